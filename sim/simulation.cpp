#include "sim/simulation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "model/errors.hpp"
#include "sim/world.hpp"

namespace remat {
namespace {

WorldOptions world_of(const Simulation& simulation) {
  return {.rank = simulation.rank,
          .offload = offload_policy(simulation.protocol, simulation.options),
          .groups = simulation.groups,
          .phases_max = simulation.events_max};
}

/// Adds what another rank took: of bytes the most of any, of work the sum.
void add_use(const RankUse& other, RankUse& all) {
  all.end = std::max(all.end, other.end);
  if (other.at_peak.total > all.at_peak.total) all.at_peak = other.at_peak;
  if (other.resident_bytes > all.resident_bytes) {
    all.resident_bytes = other.resident_bytes;
    all.resident = other.resident;
    all.resident_by_forward = other.resident_by_forward;
  }
  all.replay_peak_bytes = std::max(all.replay_peak_bytes, other.replay_peak_bytes);
  all.rederived_bytes = std::max(all.rederived_bytes, other.rederived_bytes);
  all.hook_calls += other.hook_calls;
  for (std::size_t level = 0; level < memory_level_count; ++level) {
    LevelBytes& bytes = all.offloaded[level];
    bytes.live = saturated_sum(bytes.live, other.offloaded[level].live);
    bytes.peak = saturated_sum(bytes.peak, other.offloaded[level].peak);
    bytes.sent = saturated_sum(bytes.sent, other.offloaded[level].sent);
    bytes.returned = saturated_sum(bytes.returned, other.offloaded[level].returned);
  }
  all.copies_waited.ns = saturated_sum(all.copies_waited.ns, other.copies_waited.ns);
  all.ranks_waited.ns = saturated_sum(all.ranks_waited.ns, other.ranks_waited.ns);
}

/// What reached the leaves, step by step; what came behind the last whole step at the end.
void gather_contributions(World& world, SimulationResult& result) {
  std::size_t n_steps = SIZE_MAX;
  for (std::size_t rank = 0; rank < world.n_ranks(); ++rank)
    n_steps = std::min(n_steps, world.loop(rank).contributions_by_step().size());
  for (std::size_t step = 0; step <= n_steps; ++step) {
    for (std::size_t rank = 0; rank < world.n_ranks(); ++rank) {
      const std::vector<Contribution>& all = world.loop(rank).rank().contributions();
      const std::vector<std::size_t>& by_step = world.loop(rank).contributions_by_step();
      const std::size_t begin = step == 0 ? 0 : by_step[step - 1];
      const std::size_t end = step == n_steps ? all.size() : by_step[step];
      result.contributions.insert(result.contributions.end(),
                                  all.begin() + static_cast<std::ptrdiff_t>(begin),
                                  all.begin() + static_cast<std::ptrdiff_t>(end));
    }
    if (step < n_steps) result.contributions_by_step.push_back(result.contributions.size());
  }
}

RankUse use_of(World& world, std::size_t rank) {
  RankUse use = world.loop(rank).use();
  use.ranks_waited = world.waited(rank);
  return use;
}

SimulationResult result_of(World& world) {
  SimulationResult result;
  result.was_cut_short = world.was_cut_short();
  result.error = world.error();
  if (result.error) result.error_seq = result.error->seq;
  static_cast<RankUse&>(result) = use_of(world, 0);
  for (std::size_t rank = 0; rank < world.n_ranks(); ++rank) {
    if (world.n_ranks() > 1) result.ranks.push_back(use_of(world, rank));
    if (rank > 0) add_use(result.ranks[rank], result);
    for (CaughtError& caught : world.loop(rank).caught())
      result.caught.push_back(std::move(caught));
  }
  gather_contributions(world, result);
  return result;
}

/// Runs the simulation's order; a header of the trace has `expect_json`.
SimulationResult run(const Simulation& simulation, const Protocol& protocol, Trace* trace,
                     const std::string& expect_json = {}) {
  World world(simulation.ranks, protocol, world_of(simulation), trace);
  world.log(0).header(simulation.config_json, expect_json, simulation.ranks.size());
  world.set_up();
  world.run();
  return result_of(world);
}

using GradientsByLeaf = std::map<std::string, std::vector<std::uint64_t>>;

/// The multiset of contributions to each leaf, as an `expect` has it: {"w":[…],…}.
GradientsByLeaf by_leaf(const Program& program, std::span<const Contribution> contributions) {
  GradientsByLeaf sums;
  for (const Contribution& contribution : contributions)
    sums[program.values[contribution.leaf].name].push_back(contribution.value.value());
  for (auto& [name, values] : sums)
    std::sort(values.begin(), values.end());
  return sums;
}

std::string gradients_json(const GradientsByLeaf& gradients) {
  std::string json = "{";
  for (const auto& [name, values] : gradients) {
    if (json.back() != '{') json += ",";
    json += nlohmann::json(name).dump() + ":[";
    for (const std::uint64_t value : values)
      json += (json.back() == '[' ? "" : ",") + std::to_string(value);
    json += "]";
  }
  return json + "}";
}

/// A header's `expect`. Each part of it is a promise about every step.
std::string expect_json(const Expectation& expected,
                        const std::optional<GradientsByLeaf>& gradients) {
  std::string json;
  if (gradients) json += ",\"gradients\":" + gradients_json(*gradients);
  for (const auto& [name, count] : expected.op_counts) {
    json += &expected.op_counts.front().first == &name ? ",\"op_counts\":{" : ",";
    json += nlohmann::json(name).dump() + ":" + std::to_string(count);
  }
  if (!expected.op_counts.empty()) json += "}";
  if (expected.peak_bytes) json += ",\"peak_bytes\":" + std::to_string(*expected.peak_bytes);
  if (expected.resident_bytes)
    json += ",\"resident_bytes\":" + std::to_string(*expected.resident_bytes);
  if (json.empty()) return "{}";
  json.front() = '{';
  return json + "}";
}

/// The gradients of one step, where all steps have the same.
std::optional<GradientsByLeaf> of_every_step(const Program& program,
                                             const SimulationResult& reference) {
  if (reference.contributions_by_step.empty()) return by_leaf(program, reference.contributions);
  std::optional<GradientsByLeaf> of_first;
  std::size_t begin = 0;
  for (const std::size_t end : reference.contributions_by_step) {
    const std::span<const Contribution> all(reference.contributions);
    GradientsByLeaf of_step = by_leaf(program, all.subspan(begin, end - begin));
    if (of_first && *of_first != of_step) return std::nullopt;
    of_first = std::move(of_step);
    begin = end;
  }
  return of_first;
}

bool is_of_sessions(PhaseStep::Kind kind) {
  return kind == PhaseStep::Kind::session_open || kind == PhaseStep::Kind::session_close ||
         kind == PhaseStep::Kind::session_clear || kind == PhaseStep::Kind::prefire;
}

/// What the run that checkpoints nothing does of the order: whole backwards, whose gradients are to
/// be those of two halves; and none that the loop caught an error of. A forward that it caught one
/// of raises here too, and draws its random numbers before it does; no other does.
PhaseOrder plain_order(std::size_t rank, const PhaseOrder& order,
                       const std::vector<CaughtError>& caught) {
  std::vector<bool> failed(order.size(), false);
  for (const CaughtError& error : caught)
    if (error.rank == rank) failed[error.phase] = true;
  PhaseOrder plain;
  for (std::size_t at = 0; at < order.size(); ++at) {
    PhaseStep step = order[at];
    const bool is_forward = step.kind == PhaseStep::Kind::forward;
    if (is_forward) step.catches = failed[at];
    const bool is_left_out = failed[at] && !is_forward;
    if (is_left_out || step.kind == PhaseStep::Kind::dx || is_of_sessions(step.kind)) continue;
    if (step.kind == PhaseStep::Kind::dw) step.kind = PhaseStep::Kind::backward;
    plain.push_back(std::move(step));
  }
  return plain;
}

/// What the loop will catch: told by a run without a trace, where it catches anything.
std::vector<CaughtError> caught_by(const Simulation& simulation, const Protocol& protocol) {
  const auto catches = [](const RankPlan& plan) {
    return std::any_of(plan.order->begin(), plan.order->end(),
                       [](const PhaseStep& step) { return step.catches; });
  };
  if (std::none_of(simulation.ranks.begin(), simulation.ranks.end(), catches)) return {};
  return run(simulation, protocol, nullptr).caught;
}

/// The run that checkpoints nothing, of what the loop got done.
SimulationResult reference_of(const Simulation& simulation,
                              const std::vector<CaughtError>& caught) {
  // The reference is sound, whatever fault is planted in what is held against it.
  ProtocolOptions sound = simulation.options;
  sound.fault = ProtocolFault::none;
  const auto plain = make_protocol("none", sound);
  Simulation plain_run = simulation;
  std::vector<PhaseOrder> orders;
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank)
    orders.push_back(plain_order(rank, *simulation.ranks[rank].order, caught));
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    plain_run.ranks[rank].order = &orders[rank];
  plain_run.protocol = "none";
  plain_run.options.offload.reset();
  plain_run.rank.fault = RankFault::none;
  plain_run.rank.raises_in_hooks = false;
  return run(plain_run, *plain, nullptr);
}

}  // namespace

SimulationResult simulate(const Simulation& simulation, Trace& trace) {
  const auto protocol = make_protocol(simulation.protocol, simulation.options);
  REMAT_INVARIANT(protocol != nullptr);
  return simulate(simulation, *protocol, trace);
}

SimulationResult simulate(const Simulation& simulation, const Protocol& protocol, Trace& trace) {
  const SimulationResult reference = reference_of(simulation, caught_by(simulation, protocol));
  const Program& program = *simulation.ranks.front().program;
  std::optional<GradientsByLeaf> gradients;
  const bool has_reference = !reference.error && !reference.was_cut_short;
  if (has_reference) gradients = of_every_step(program, reference);
  SimulationResult result =
      run(simulation, protocol, &trace, expect_json(simulation.expectation, gradients));
  result.plain_error = reference.error;
  if (has_reference && !result.error && !result.was_cut_short) {
    result.gradients_match =
        by_leaf(program, result.contributions) == by_leaf(program, reference.contributions);
  }
  return result;
}

std::optional<SimulatedError> run_over_and_over(const Simulation& simulation, std::int64_t times,
                                                const AfterPhase& after_phase) {
  const auto protocol = make_protocol(simulation.protocol, simulation.options);
  REMAT_INVARIANT(protocol != nullptr && simulation.ranks.size() == 1);
  World world(simulation.ranks, *protocol, world_of(simulation), nullptr);
  world.loop(0).watch(after_phase);
  world.set_up();
  for (std::int64_t n = 0; n < times && !world.error() && !world.was_cut_short(); ++n) {
    world.run();
    world.loop(0).start_again();
  }
  return world.error();
}

Simulation simulation_of(const Scenario& scenario) {
  Simulation simulation;
  for (std::uint32_t rank = 0; rank < scenario.n_ranks; ++rank)
    simulation.ranks.push_back({&scenario.program_of(rank), &scenario.order});
  simulation.groups = scenario.program.groups;
  simulation.protocol = scenario.protocol;
  simulation.options = scenario.options;
  simulation.rank = scenario.rank;
  simulation.config_json = scenario.config_json;
  return simulation;
}

bool fits_memory(const Scenario& scenario, const SimulationResult& result) {
  return scenario.memory_bytes == 0 || result.at_peak.total <= scenario.memory_bytes;
}

}  // namespace remat
