#include "cli/simulate_command.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.hpp"
#include "model/errors.hpp"
#include "properties/expectation.hpp"
#include "properties/invariants/checker.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_writer.hpp"
#include "sim/simulation.hpp"
#include "traces/output_file.hpp"
#include "traces/summary.hpp"
#include "traces/trace_hash.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

/// Everything that is told of one run.
struct Outcome {
  Scenario scenario;
  SimulationResult result;
  Verdict verdict;
  TraceSummary summary;
  std::string hash;
};

/// The scenario's own options go on, those of them that the other protocol knows.
void run_under(const std::string& protocol, Scenario& scenario) {
  if (make_protocol(protocol, {}) == nullptr) {
    throw InputError(fmt::format("--protocol: unknown protocol '{}'; expected one of {}", protocol,
                                 known_protocols()));
  }
  scenario.protocol = protocol;
  scenario.config_json = config_json(protocol_json(scenario), scenario);
}

Outcome outcome_of(const SimulateOptions& options) {
  Outcome outcome;
  outcome.scenario = read_scenario(options.scenario);
  if (options.protocol) run_under(*options.protocol, outcome.scenario);
  Trace trace;
  Simulation simulation = simulation_of(outcome.scenario);
  simulation.events_max = options.events_max;
  simulation.expectation = expectation_of(outcome.scenario);
  outcome.result = simulate(simulation, trace);
  Checker checker;
  SummaryBuilder summary;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    checker.observe(trace[i]);
    summary.observe(trace[i]);
  }
  outcome.verdict = checker.finish();
  outcome.summary = summary.finish();
  outcome.hash = trace_hash(trace);
  if (!options.trace.empty()) write_trace(trace, options.trace);
  return outcome;
}

bool is_backward(Phase phase) {
  return phase == Phase::backward || phase == Phase::backward_input ||
         phase == Phase::backward_weight;
}

/// Ops by name, of forward, of replays and of the three kinds of backward together.
std::map<std::string, Counts> ops_of(const TraceSummary& summary) {
  std::map<std::string, Counts> ops = {{"forward", {}}, {"replay", {}}, {"backward", {}}};
  for (const auto& [phase, counts] : summary.ops) {
    const std::string name = phase == Phase::forward  ? "forward"
                             : phase == Phase::replay ? "replay"
                                                      : "backward";
    if (phase != Phase::forward && phase != Phase::replay && !is_backward(phase)) continue;
    for (const auto& [op, n] : counts)
      ops[name][op] += n;
  }
  return ops;
}

Json classes_json(const BytesByClass& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < owner_class_count; ++i) {
    if (bytes.by_class[i] != 0)
      json[std::string(name_of(static_cast<OwnerClass>(i)))] = bytes.by_class[i];
  }
  return json;
}

/// Levels that something was sent to.
Json levels_json(const BytesByLevel& levels) {
  Json json = Json::object();
  for (std::size_t i = 0; i < memory_level_count; ++i) {
    if (levels[i] == LevelBytes()) continue;
    json[std::string(memory_level_names[i])] = {{"peak_bytes", levels[i].peak},
                                                {"sent_bytes", levels[i].sent},
                                                {"returned_bytes", levels[i].returned}};
  }
  return json;
}

/// What each rank took; it is busy where it waits neither for copies nor for other ranks.
Json ranks_json(const SimulationResult& result) {
  const std::vector<RankUse> alone = {result};
  Json rows = Json::array();
  for (const RankUse& use : result.ranks.empty() ? alone : result.ranks) {
    const std::int64_t busy_ns = use.end.ns - use.copies_waited.ns - use.ranks_waited.ns;
    rows.push_back({{"rank", rows.size()},
                    {"busy_ns", busy_ns},
                    {"bubble_ns", result.end.ns - busy_ns},
                    {"peak_bytes", use.at_peak.total},
                    {"resident_bytes", use.resident_bytes}});
  }
  return rows;
}

Json error_json(const SimulatedError& error, std::int64_t seq) {
  return {{"code", error.code}, {"seq", seq}, {"type", error.type}, {"message", error.message}};
}

std::string simulation_json(const Outcome& outcome) {
  const SimulationResult& result = outcome.result;
  Json json = {{"version", 1}};
  json["error"] = nullptr;
  if (result.error) json["error"] = error_json(*result.error, result.error_seq);
  json["caught"] = Json::array();
  for (const CaughtError& caught : result.caught)
    json["caught"].push_back(error_json(caught.error, caught.error.seq));
  json["makespan_ns"] = result.end.ns;
  json["peak_bytes"] = result.at_peak.total;
  json["resident_bytes"] = result.resident_bytes;
  json["resident_by_microbatch"] = result.resident_by_forward;
  json["replay_peak_bytes"] = result.replay_peak_bytes;
  json["by_class"] = classes_json(result.at_peak);
  json["resident_by_class"] = classes_json(result.resident);
  json["rederived_bytes"] = result.rederived_bytes;
  json["offloaded"] = levels_json(result.offloaded);
  json["ops"] = ops_of(outcome.summary);
  json["hook_calls"] = result.hook_calls;
  json["units"] = Json::array();
  for (const UnitSummary& unit : outcome.summary.units) {
    json["units"].push_back({{"unit", unit.unit},
                             {"microbatch", unit.microbatch ? Json(*unit.microbatch) : Json()},
                             {"packs", unit.packs},
                             {"unpacks", unit.unpacks},
                             {"replays", unit.replays}});
  }
  json["ranks"] = ranks_json(result);
  json["violations"] = Json::array();
  for (const Finding& finding : outcome.verdict.findings) {
    json["violations"].push_back({{"invariant", finding.invariant},
                                  {"seq", finding.seq},
                                  {"message", finding.message},
                                  {"events", finding.events}});
  }
  json["gradients_match"] = result.gradients_match ? Json(*result.gradients_match) : Json(nullptr);
  json["cut_short"] = result.was_cut_short;
  json["fits"] = fits_memory(outcome.scenario, result);
  json["trace_hash"] = outcome.hash;
  json["seed"] = outcome.scenario.rank.seed;
  return json.dump(2) + "\n";
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 4> units = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  auto shown = static_cast<double>(bytes);
  for (; shown >= 1024 && unit + 1 < units.size(); ++unit)
    shown /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", shown, units[unit]);
}

std::string time_text(std::int64_t ns) {
  if (ns < 10'000) return fmt::format("{} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
  if (ns < 10'000'000'000) return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.2f} s", static_cast<double>(ns) / 1e9);
}

std::int64_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, n] : counts)
    sum += n;
  return sum;
}

/// What is told, and what it is.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// What was sent away, and what waits for it cost.
Rows offload_rows(const SimulationResult& result) {
  Rows rows;
  for (std::size_t i = 0; i < memory_level_count; ++i) {
    const LevelBytes& level = result.offloaded[i];
    if (level == LevelBytes()) continue;
    rows.emplace_back(fmt::format("on the {} at once", memory_level_names[i]),
                      bytes_text(level.peak));
    rows.emplace_back(
        fmt::format("sent to the {}", memory_level_names[i]),
        fmt::format("{}, {} came back", bytes_text(level.sent), bytes_text(level.returned)));
  }
  if (result.copies_waited.ns > 0)
    rows.emplace_back("waited for copies", time_text(result.copies_waited.ns));
  return rows;
}

/// What each of several ranks took.
Rows rank_rows(const SimulationResult& result) {
  Rows rows;
  if (result.ranks.empty()) return rows;
  for (const Json& rank : ranks_json(result)) {
    rows.emplace_back(
        fmt::format("rank {}", rank["rank"].get<int>()),
        fmt::format("busy {}, waits {}, peak {}", time_text(rank["busy_ns"].get<std::int64_t>()),
                    time_text(rank["bubble_ns"].get<std::int64_t>()),
                    bytes_text(rank["peak_bytes"].get<std::int64_t>())));
  }
  return rows;
}

std::string simulation_text(const SimulateOptions& options, const Outcome& outcome, bool colours) {
  const SimulationResult& result = outcome.result;
  const std::map<std::string, Counts> ops = ops_of(outcome.summary);
  std::string text = fmt::format("{} under {}\n", options.scenario, outcome.scenario.protocol);
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", name, value);
  };
  row("makespan", time_text(result.end.ns));
  row("peak", bytes_text(result.at_peak.total));
  row("resident after forward", bytes_text(result.resident_bytes));
  row("added by a replay", bytes_text(result.replay_peak_bytes));
  if (result.rederived_bytes > 0) row("in slots at once", bytes_text(result.rederived_bytes));
  for (const auto& [name, use] : offload_rows(result))
    row(name, use);
  for (const auto& [name, use] : rank_rows(result))
    row(name, use);
  row("ops", fmt::format("{} forward, {} in replays, {} backward", total(ops.at("forward")),
                         total(ops.at("replay")), total(ops.at("backward"))));
  const std::string why_not =
      result.plain_error ? ": the plain run ends in " + result.plain_error->code : std::string();
  row("gradients",
      !result.gradients_match   ? painted("not compared" + why_not, Colour::yellow, colours)
      : *result.gradients_match ? painted("equal the plain run's", Colour::green, colours)
                                : painted("DIFFER from the plain run's", Colour::red, colours));
  row("trace hash", outcome.hash);
  const auto rows_of = [&](std::string_view when, const BytesByClass& bytes) {
    for (std::size_t i = 0; i < owner_class_count; ++i) {
      const std::string_view owner = name_of(static_cast<OwnerClass>(i));
      if (bytes.by_class[i] != 0)
        row(fmt::format("{}, {}", when, owner), bytes_text(bytes.by_class[i]));
    }
  };
  rows_of("resident", result.resident);
  rows_of("at peak", result.at_peak);
  for (const UnitSummary& unit : outcome.summary.units) {
    if (unit.replays == 0 && unit.packs == 0) continue;
    text += fmt::format("  {}{}: {} packs, {} unpacks, {} replays\n", unit.unit,
                        unit.microbatch ? fmt::format(" (micro-batch {})", *unit.microbatch) : "",
                        unit.packs, unit.unpacks, unit.replays);
  }
  for (const Finding& finding : outcome.verdict.findings) {
    text += fmt::format("{} at event {}: {}\n", painted(finding.invariant, Colour::red, colours),
                        finding.seq, finding.message);
  }
  for (const CaughtError& caught : result.caught) {
    text += fmt::format("caught {} ({}): {}\n", caught.error.code, caught.error.type,
                        caught.error.message);
  }
  if (result.error) {
    text += fmt::format("{} ({}): {}\n", painted(result.error->code, Colour::red, colours),
                        result.error->type, result.error->message);
  }
  if (result.was_cut_short) {
    text += fmt::format("{}: the run has more than {} events\n",
                        painted("cut short", Colour::red, colours), options.events_max);
  }
  if (!fits_memory(outcome.scenario, result)) {
    text += fmt::format("{}: the peak is above the machine's {}\n",
                        painted("out of memory", Colour::red, colours),
                        bytes_text(outcome.scenario.memory_bytes));
  }
  text += fmt::format("Again: rematsim simulate {}{} (seed {})\n", options.scenario,
                      options.protocol ? " --protocol " + *options.protocol : "",
                      outcome.scenario.rank.seed);
  return text;
}

}  // namespace

ExitCode simulate_command(const SimulateOptions& options) {
  const Outcome outcome = outcome_of(options);
  const bool colours = options.output == "-" && output_has_colours();
  OutputFile file(options.output);
  file.write(options.json ? simulation_json(outcome) : simulation_text(options, outcome, colours));
  file.commit();
  const bool is_fine = !outcome.result.error && !outcome.result.was_cut_short &&
                       outcome.verdict.holds() && outcome.result.gradients_match.value_or(true) &&
                       fits_memory(outcome.scenario, outcome.result);
  return is_fine ? ExitCode::fine : ExitCode::found;
}

}  // namespace remat
