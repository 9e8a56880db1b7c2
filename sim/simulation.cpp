#include "sim/simulation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "model/errors.hpp"
#include "sim/engine.hpp"

namespace remat {
namespace {

/// For each step, whether it is the last that needs its micro-batch's graph.
std::vector<bool> last_uses(const PhaseOrder& order) {
  std::vector<bool> last(order.size(), false);
  std::map<std::int64_t, bool> needed_later;
  for (std::size_t at = order.size(); at-- > 0;) {
    bool& needed = needed_later[order[at].microbatch.value_or(-1)];
    switch (order[at].kind) {
      case PhaseStep::Kind::backward:
      case PhaseStep::Kind::dx:
      case PhaseStep::Kind::dw:
        last[at] = !needed;
        needed = true;
        break;
      case PhaseStep::Kind::forward:
        needed = false;
        break;
      default:
        break;
    }
  }
  return last;
}

/// The training loop of one rank as events of the engine: each phase of the order is one, and the
/// next begins when it is over.
class Loop : private EventHandler {
 public:
  Loop(const Simulation& simulation, const Protocol& protocol, Trace* trace)
      : simulation_(&simulation),
        is_last_use_(last_uses(*simulation.order)),
        log_(trace, *simulation.program),
        rank_(*simulation.program, protocol, simulation.rank, log_,
              offload_policy(simulation.protocol, simulation.options)) {}

  void begin(const std::string& expect_json) { log_.header(simulation_->config_json, expect_json); }

  SimulationResult run() {
    rank_.set_up();
    const RunOutcome outcome = run_order();
    SimulationResult& result = result_;
    result.was_cut_short = outcome == RunOutcome::events_max_reached;
    result.error = rank_.error();
    result.caught = std::move(caught_);
    if (result.error) result.error_seq = result.error->seq;
    result.end = log_.now();
    result.at_peak = rank_.ledger().at_peak();
    result.replay_peak_bytes = rank_.replay_peak_bytes();
    result.rederived_bytes = rank_.ledger().most_of(OwnerClass::slot);
    result.hook_calls = rank_.hook_calls();
    result.offloaded = rank_.ledger().levels();
    result.copies_waited = rank_.copies_waited();
    result.contributions = rank_.contributions();
    return std::move(result_);
  }

  std::optional<SimulatedError> repeat(std::int64_t times, const AfterPhase& after_phase) {
    after_phase_ = &after_phase;
    rank_.set_up();
    for (std::int64_t n = 0; n < times; ++n) {
      if (run_order() == RunOutcome::events_max_reached || rank_.error()) break;
      rank_.forget_contributions(0);
      caught_.clear();
      result_ = {};
    }
    return rank_.error();
  }

 private:
  static constexpr std::uint32_t rank_number = 0;
  static constexpr std::uint32_t main_stream = 0;

  RunOutcome run_order() {
    ByOrder chooser;
    Engine engine(*this, chooser);
    if (!simulation_->order->empty()) engine.schedule(log_.now(), rank_number, main_stream, 0);
    return engine.run(simulation_->events_max - n_phases_);
  }

  void handle(Engine& engine, const Event& event) override {
    const PhaseOrder& order = *simulation_->order;
    const auto at = static_cast<std::size_t>(event.payload);
    ++n_phases_;
    rank_.set_catches(order[at].catches);
    const Flow flow = run(order[at], result_);
    REMAT_INVARIANT(flow != Flow::stopped);
    if (flow != Flow::done && !order[at].catches) return;  // an error: nothing comes after it
    if (flow != Flow::done) catch_error(at);
    if (is_last_use_[at]) rank_.drop_graph(order[at].microbatch);
    if (after_phase_ != nullptr) (*after_phase_)(rank_, order[at]);
    if (at + 1 < order.size()) engine.schedule(log_.now(), rank_number, main_stream, at + 1);
  }

  /// The loop takes note of the error and goes on. What a forward had made is nobody's then: its
  /// caller has no loss to hold on to.
  void catch_error(std::size_t at) {
    const PhaseStep& step = (*simulation_->order)[at];
    caught_.push_back({at, *rank_.error()});
    rank_.forget_error();
    if (step.kind == PhaseStep::Kind::forward) rank_.drop_graph(step.microbatch);
  }

  void footprint(const Event& event, Footprint& footprint) const override {
    rank_.footprint((*simulation_->order)[static_cast<std::size_t>(event.payload)], footprint);
  }

  Flow run(const PhaseStep& step, SimulationResult& result) {
    switch (step.kind) {
      case PhaseStep::Kind::step_begin:
        log_.step(true, step_);
        return Flow::done;
      case PhaseStep::Kind::step_end:
        rank_.end_step();
        log_.step(false, step_++);
        result.contributions_by_step.push_back(rank_.contributions().size());
        return Flow::done;
      case PhaseStep::Kind::forward: {
        const Flow flow = rank_.run_forward(step.forward, step.microbatch);
        if (flow != Flow::done && step.catches) return flow;  // nothing of it will stay
        result.resident = rank_.ledger().live();
        result.resident_bytes = result.resident.total;
        result.resident_by_forward.push_back(result.resident_bytes);
        return flow;
      }
      case PhaseStep::Kind::backward:
        return rank_.run_backward(step.microbatch, step.retain, step.group, step.wrt, step.root);
      case PhaseStep::Kind::dx:
        return rank_.run_dx(step.microbatch, step.group);
      case PhaseStep::Kind::dw:
        return rank_.run_dw(step.microbatch, step.group);
      case PhaseStep::Kind::update:
        rank_.run_update(step.writes);
        return Flow::done;
      case PhaseStep::Kind::zero_grad:
        rank_.zero_gradients();
        rank_.forget_contributions(
            result.contributions_by_step.empty() ? 0 : result.contributions_by_step.back());
        return Flow::done;
      case PhaseStep::Kind::session_open:
        rank_.open_session(step.session, step.retain);
        return Flow::done;
      case PhaseStep::Kind::session_close:
        rank_.close_session(step.session);
        return Flow::done;
      case PhaseStep::Kind::session_clear:
        rank_.clear_session(step.session);
        return Flow::done;
      case PhaseStep::Kind::prefire:
        return rank_.run_prefire(step.microbatch, step.frames);
    }
    return Flow::done;
  }

  const Simulation* simulation_;
  std::vector<bool> is_last_use_;
  EventLog log_;
  Rank rank_;
  SimulationResult result_;
  std::vector<CaughtError> caught_;
  std::uint64_t n_phases_ = 0;
  std::int64_t step_ = 0;
  const AfterPhase* after_phase_ = nullptr;
};

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
PhaseOrder plain_order(const PhaseOrder& order, const std::vector<CaughtError>& caught) {
  std::vector<bool> failed(order.size(), false);
  for (const CaughtError& error : caught)
    failed[error.phase] = true;
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
  const PhaseOrder& order = *simulation.order;
  const auto catches = [](const PhaseStep& step) { return step.catches; };
  if (std::none_of(order.begin(), order.end(), catches)) return {};
  return Loop(simulation, protocol, nullptr).run().caught;
}

/// The run that checkpoints nothing, of what the loop got done.
SimulationResult reference_of(const Simulation& simulation,
                              const std::vector<CaughtError>& caught) {
  // The reference is sound, whatever fault is planted in what is held against it.
  ProtocolOptions sound = simulation.options;
  sound.fault = ProtocolFault::none;
  const auto plain = make_protocol("none", sound);
  const PhaseOrder order = plain_order(*simulation.order, caught);
  Simulation plain_run = simulation;
  plain_run.order = &order;
  plain_run.protocol = "none";
  plain_run.options.offload.reset();
  plain_run.rank.fault = RankFault::none;
  plain_run.rank.raises_in_hooks = false;
  return Loop(plain_run, *plain, nullptr).run();
}

}  // namespace

SimulationResult simulate(const Simulation& simulation, Trace& trace) {
  const auto protocol = make_protocol(simulation.protocol, simulation.options);
  REMAT_INVARIANT(protocol != nullptr);
  return simulate(simulation, *protocol, trace);
}

SimulationResult simulate(const Simulation& simulation, const Protocol& protocol, Trace& trace) {
  const SimulationResult reference = reference_of(simulation, caught_by(simulation, protocol));
  std::optional<GradientsByLeaf> gradients;
  if (!reference.error) gradients = of_every_step(*simulation.program, reference);
  Loop loop(simulation, protocol, &trace);
  loop.begin(expect_json(simulation.expectation, gradients));
  SimulationResult result = loop.run();
  if (!reference.error && !result.error) {
    result.gradients_match = by_leaf(*simulation.program, result.contributions) ==
                             by_leaf(*simulation.program, reference.contributions);
  }
  return result;
}

std::optional<SimulatedError> run_over_and_over(const Simulation& simulation, std::int64_t times,
                                                const AfterPhase& after_phase) {
  const auto protocol = make_protocol(simulation.protocol, simulation.options);
  REMAT_INVARIANT(protocol != nullptr);
  return Loop(simulation, *protocol, nullptr).repeat(times, after_phase);
}

Simulation simulation_of(const Scenario& scenario) {
  return {.program = &scenario.program,
          .order = &scenario.order,
          .protocol = scenario.protocol,
          .options = scenario.options,
          .rank = scenario.rank,
          .config_json = scenario.config_json,
          .expectation = {}};
}

bool fits_memory(const Scenario& scenario, const SimulationResult& result) {
  return scenario.memory_bytes == 0 || result.at_peak.total <= scenario.memory_bytes;
}

}  // namespace remat
