#include "tests/schedules/every_second.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "properties/campaign.hpp"
#include "properties/expectation.hpp"
#include "properties/invariants/checker.hpp"
#include "sim/simulation.hpp"
#include "tests/sanitizers.hpp"
#include "tests/sim/scenario_run.hpp"

namespace remat {
namespace {

using Fault = EverySecondProtocol::Fault;

/// The same program, saying by marks which the reference rules of P10 read what the protocol
/// answers by itself: all ops are wanted, every second call is kept.
Scenario as_marked(Scenario scenario) {
  scenario.protocol = "torch-sac";
  scenario.options = {.keep_every = 2};
  for (Statement& statement : scenario.program.forwards.front().statements)
    if (auto* op = std::get_if<OpStatement>(&statement)) op->kept = true;
  return scenario;
}

/// The scenario under the protocol, whatever it names itself, and what all invariants say of it.
ScenarioRun run_under(const Protocol& protocol, Scenario scenario) {
  ScenarioRun run;
  run.scenario = std::make_unique<Scenario>(std::move(scenario));
  Simulation simulation = simulation_of(*run.scenario);
  simulation.config_json = R"({"protocol":")" + std::string(protocol.name()) + "\"}";
  simulation.expectation = expectation_of(as_marked(*run.scenario), ReplayedEffects::repeat);
  run.result = simulate(simulation, protocol, run.trace);
  Checker checker;
  for (std::size_t i = 0; i < run.trace.size(); ++i)
    checker.observe(run.trace[i]);
  run.verdict = checker.finish();
  return run;
}

Scenario scenario_named(const std::string& name) {
  return read_scenario(std::string(REMATSIM_SOURCE_DIR) + "/sim/scenarios/" + name + ".json");
}

/// A legal random program. None writes in place: what a program keeps it must not write later, and
/// the generator knows that of ops with a mark only. Nor do ranks, in what they exchange.
Scenario random_scenario(std::uint64_t number) {
  constexpr std::uint64_t seed = 17;
  ChoiceTape tape = tape_of_case(seed, number);
  const auto bit = [](Feature feature) {
    return std::uint64_t{1} << static_cast<std::uint32_t>(feature);
  };
  const GeneratorOptions options{.without = bit(Feature::in_place) | bit(Feature::ranks),
                                 .protocol = "torch-sac",
                                 .legal_only = true};
  return generate_case(tape, options).scenario;
}

/// The first of many random programs in which something is amiss, by what is; none: all are right.
std::optional<std::string> first_alarm(const Protocol& protocol, std::uint64_t n_programs) {
  for (std::uint64_t number = 0; number < n_programs; ++number) {
    const ScenarioRun run = run_under(protocol, random_scenario(number));
    if (!run.broken().empty()) return run.broken().front();
    if (run.result.error) return "error:" + run.code();
    if (run.result.gradients_match != true) return "gradients";
  }
  return std::nullopt;
}

constexpr std::uint64_t n_random = built_with_sanitizers ? 300 : 10'000;

}  // namespace

TEST_CASE("a protocol that no registry lists runs: of each op every second call is kept",
          "[schedules]") {
  const ScenarioRun run = run_under(EverySecondProtocol(), scenario_named("two_blocks"));
  CHECK(run.code() == "none");
  CHECK(run.broken().empty());
  CHECK(run.result.gradients_match == true);
  // Two blocks for two micro-batches: in each region rmsnorm, gelu, tanh and the first of the two
  // products are kept, so that a replay runs the second product alone.
  CHECK(run.ops("matmul", Phase::forward) == 8);
  CHECK(run.ops("matmul", Phase::replay) == 4);
  CHECK(run.ops("rmsnorm", Phase::replay) == 0);
  CHECK(run.kinds(Kind::sac_hit) == 16);
}

TEST_CASE("the example protocol gives the gradients of the plain run on the shipped scenarios",
          "[schedules]") {
  for (const std::string name : {"two_blocks", "selective", "nested_reentrant"}) {
    CAPTURE(name);
    const ScenarioRun run = run_under(EverySecondProtocol(), scenario_named(name));
    CHECK(run.code() == "none");
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
  }
}

TEST_CASE("the example protocol refuses what P10 refuses: a second replay of what was served",
          "[schedules]") {
  const ScenarioRun run = run_under(EverySecondProtocol(), scenario_named("split_backward"));
  CHECK(run.code() == "E-TWICE");
}

TEST_CASE("the example protocol holds on random programs: invariants, counts, bytes, gradients",
          "[schedules]") {
  CHECK(first_alarm(EverySecondProtocol(), n_random) == std::nullopt);
}

TEST_CASE("a fault of the example protocol is found on random programs", "[schedules]") {
  CHECK(first_alarm(EverySecondProtocol(Fault::asks_again), n_random) == "policy_stable");
}

TEST_CASE("the example protocol never keeps a write, and is caught where it does", "[schedules]") {
  // The second scale is not kept, so that its output may be written.
  const std::string body = op("scale", {"x"}, {"a"}) + "," + op("scale", {"a"}, {"k"}) +
                           R"(,{"in_place":"scale","in":["k"]},)" + op("mul", {"k", "k"}, {"z"}) +
                           "," + op("tanh", {"z"}, {"y"});
  const Scenario scenario = *run_stage(checkpoint("r", body) + "," + loss_of("y")).scenario;
  const ScenarioRun sound = run_under(EverySecondProtocol(), scenario);
  CHECK(sound.broken().empty());
  CHECK(sound.result.gradients_match == true);
  const ScenarioRun faulty = run_under(EverySecondProtocol(Fault::keeps_writes), scenario);
  // It holds on to the tensor that it wrote, and without the write the replay has another value in
  // the slot than forward packed.
  CHECK(faulty.code() == "E-META");
  CHECK(faulty.broken() == std::vector<std::string>{"peak_within_bound", "gradients_equal_plain"});
}

}  // namespace remat
