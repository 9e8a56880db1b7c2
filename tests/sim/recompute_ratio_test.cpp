#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario_writer.hpp"
#include "tests/sim/unit_run.hpp"

// How many of a model's layers are checkpointed at all (protocols.md I-44).

namespace remat {
namespace {

std::string tanh_of(const std::string& from, const std::string& to) {
  return op("tanh", {from}, {to});
}

/// A layer that reads `from` and makes `to`, with a product and a tanh.
std::string layer(const std::string& name, const std::string& from, const std::string& to,
                  const std::string& owner = "") {
  return checkpoint(name, op("mm", {from, "w0"}, {"h"}) + "," + tanh_of("h", to),
                    R"("owner":")" + owner + "\"");
}

/// Two models with two layers each, that take turns.
std::string two_models() {
  return layer("a0", "x", "p", "m1") + "," + layer("b0", "p", "q", "m2") + "," +
         layer("a1", "q", "r", "m1") + "," + layer("b1", "r", "y", "m2") + "," + loss_of("y");
}

std::string ratio(const std::string& value, const std::string& more = "") {
  return R"("recompute_ratio":)" + value + (more.empty() ? "" : "," + more);
}

/// The checkpointed regions that are replayed, each once, by name.
Texts replayed(const ScenarioRun& run) {
  Texts names;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::unit_begin || event.text(Field::exec) != "replay") continue;
    names.emplace_back(event.text(Field::unit));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void check_sound(const ScenarioRun& run) {
  CHECK(run.code() == "none");
  CHECK(run.broken() == no_texts);
  CHECK(run.result.gradients_match == true);
}

Texts replayed(const std::string& stage, const std::string& options) {
  const ScenarioRun run = run_stage(stage, "torch", options);
  check_sound(run);
  return replayed(run);
}

}  // namespace

TEST_CASE("`recompute_ratio` checkpoints the first layers of each model", "[sim]") {
  const std::string four = layer("l0", "x", "p") + "," + layer("l1", "p", "q") + "," +
                           layer("l2", "q", "r") + "," + layer("l3", "r", "y") + "," + loss_of("y");
  CHECK(replayed(four, ratio("1")) == Texts{"l0", "l1", "l2", "l3"});
  CHECK(replayed(four, ratio("0.5")) == Texts{"l0", "l1"});
  CHECK(replayed(four, ratio("0.9")) == Texts{"l0", "l1", "l2"});
  CHECK(replayed(four, ratio("0.2")) == no_texts);
  CHECK(replayed(two_models(), ratio("0.5")) == Texts{"a0", "b0"});
}

TEST_CASE("`recompute_ratio` of one model leaves the others alone", "[sim]") {
  CHECK(replayed(two_models(), ratio(R"({"m2":0.5})")) == Texts{"a0", "a1", "b0"});
  CHECK(replayed(two_models(), ratio(R"({"m1":0,"m2":0.5})")) == Texts{"b0"});
  CHECK(replayed(two_models(), ratio("{}")) == Texts{"a0", "a1", "b0", "b1"});
}

TEST_CASE("a region that is called again is one layer", "[sim]") {
  const std::string stage = layer("a", "x", "p") + "," + layer("b", "p", "q") + "," +
                            layer("a", "q", "y") + "," + loss_of("y");
  CHECK(replayed(stage, ratio("0.5")) == Texts{"a", "a"});
}

TEST_CASE("what lies in a layer goes with it, but for layers of another model", "[sim]") {
  const auto outer = [](const std::string& name, const std::string& from, const std::string& to) {
    return checkpoint(name, checkpoint("core", tanh_of(from, "h")) + "," +
                                layer("side_" + name, "h", to, "side"));
  };
  const std::string stage = outer("a", "x", "p") + "," + outer("b", "p", "y") + "," + loss_of("y");
  CHECK(replayed(stage, ratio(R"({"":0.5,"side":0})")) == Texts{"a", "core"});
  CHECK(replayed(stage, ratio(R"({"":0})")) == Texts{"side_a", "side_b"});
  CHECK(replayed(stage, ratio("0")) == no_texts);
}

TEST_CASE("a ratio of 0 is no checkpointing, one of 1 is as without a word", "[sim]") {
  const ScenarioRun plain = run_stage(two_models(), "none");
  for (const char* protocol :
       {"torch", "torch-reentrant", "torch-sac", "exclude-rederive", "remat", "kept-ops"}) {
    CAPTURE(protocol);
    const ScenarioRun none = run_stage(two_models(), protocol, ratio("0"));
    check_sound(none);
    CHECK(none.result.resident_bytes == plain.result.resident_bytes);
    CHECK(none.events == plain.events);
    CHECK(run_stage(two_models(), protocol, ratio("1")).events ==
          run_stage(two_models(), protocol).events);
  }
}

TEST_CASE("units keep of the layers that are checkpointed, and those alone are asked", "[sim]") {
  const std::string units = unit(R"("ops":["tanh"])");
  const ScenarioRun half = run_stage(two_models(), "kept-ops", ratio("0.5", units));
  check_sound(half);
  CHECK(decisions(half) == Texts{"mm F", "tanh T", "mm F", "tanh T"});
  CHECK(replayed(half) == Texts{"a0", "b0"});
  CHECK(warnings(half) == no_texts);
  SECTION("a unit that keeps nothing there is told, whatever the other layers hold") {
    const std::string stage = checkpoint("a", op("mm", {"x", "w0"}, {"h"})) + "," +
                              checkpoint("b", tanh_of("h", "y")) + "," + loss_of("y");
    CHECK(warnings(run_stage(stage, "kept-ops", units)) == no_texts);
    const ScenarioRun first = run_stage(stage, "kept-ops", ratio("0.5", units));
    check_sound(first);
    CHECK(warnings(first) == Texts{"W-UNDER-KEPT u"});
  }
  SECTION("another selection, and reentrant regions where there is none") {
    const ScenarioRun run =
        run_stage(two_models(), "kept-ops",
                  ratio("0.5", units + R"(,"sub_models":{"m2":false},"mode":"by_selection")"));
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm F", "tanh T"});
    CHECK(replayed(run) == Texts{"a0", "b0"});
    CHECK(run.count("replay b0#0") == 1);
  }
}

TEST_CASE("a model that checkpoints no layer is told once of each unit that it selects", "[sim]") {
  const std::string units = unit(R"("ops":["tanh"])");
  const ScenarioRun one = run_stage(two_models(), "kept-ops", ratio(R"({"m2":0.4})", units));
  check_sound(one);
  CHECK(decisions(one) == Texts{"mm F", "tanh T", "mm F", "tanh T"});
  CHECK(warnings(one) == Texts{"W-IGNORED m2 u"});
  SECTION("in its words") {
    for (std::size_t i = 0; i < one.trace.size(); ++i) {
      if (one.trace[i].kind() != Kind::warning) continue;
      CHECK(one.trace[i].text(Field::message) ==
            "u of model m2 is selected, and none of its layers is checkpointed");
    }
  }
  SECTION("one that stands for nothing is told to, and no more") {
    CHECK(warnings(run_stage(two_models(), "kept-ops",
                             ratio("0", unit(R"("ops":["vendor::fused"])")))) ==
          Texts{"W-INERT m1 u", "W-INERT m2 u"});
  }
  SECTION("and nothing where none is selected") {
    CHECK(warnings(run_stage(two_models(), "kept-ops",
                             ratio("0", R"("units":{"u":{"ops":["tanh"]}})"))) == no_texts);
  }
}

TEST_CASE("a layer that is not checkpointed runs as a callable of its name", "[sim]") {
  const std::string stage =
      checkpoint("outer", layer("f", "x", "p", "side") + "," + tanh_of("p", "y")) + "," +
      loss_of("y");
  const ScenarioRun run =
      run_stage(stage, "kept-callables", ratio(R"({"side":0})", unit(R"("callables":["f"])")));
  check_sound(run);
  CHECK(decisions(run) == Texts{"mm T", "tanh T", "tanh F"});
  CHECK(warnings(run) == Texts{"W-IGNORED side u"});
}

TEST_CASE("another number of checkpointed layers is found by the counts, and by the bytes",
          "[sim]") {
  const auto broken = [](const std::string& run_with, const std::string& expected_of) {
    const ScenarioRun expected = run_stage(two_models(), "torch", ratio(expected_of));
    const ScenarioRun run = run_stage(two_models(), "torch", ratio(run_with));
    Simulation simulation = simulation_of(*run.scenario);
    simulation.expectation = expectation_of(*expected.scenario);
    Trace trace;
    simulate(simulation, trace);
    Checker checker;
    for (std::size_t i = 0; i < trace.size(); ++i)
      checker.observe(trace[i]);
    Texts names;
    for (const Finding& finding : checker.finish().findings)
      if (names.empty() || names.back() != finding.invariant) names.push_back(finding.invariant);
    return names;
  };
  CHECK(broken("0.5", "0.5") == no_texts);
  CHECK(broken("0.5", "1") == Texts{"peak_within_bound", "op_counts"});
  CHECK(broken("1", "0.5") == Texts{"op_counts"});
  CHECK(broken(R"({"m1":0.5})", R"({"m2":0.5})") == no_texts);  // as many of the same layers
}

TEST_CASE("a ratio that was read is written as it was", "[sim]") {
  for (const std::string text : {"0.29", "0.5", R"({"m1":0.0,"m2":0.75})"}) {
    CAPTURE(text);
    const ScenarioRun run = run_stage(two_models(), "torch", ratio(text));
    CHECK(protocol_json(*run.scenario) == R"({"name":"torch",)" + ratio(text) + "}");
  }
  CHECK(protocol_json(*run_stage(two_models(), "torch", ratio("1")).scenario) ==
        R"({"name":"torch"})");
}

}  // namespace remat
