#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "sim/scenario_writer.hpp"
#include "tests/sim/unit_run.hpp"

// Which save units are asked for (protocols.md I-43, I-44), and what becomes of regions for which
// none is.

namespace remat {
namespace {

/// Two layers of two models, the second of which hands its output out in a container.
ScenarioRun run_models(const std::string& protocol, const std::string& options = "") {
  const std::string layers =
      checkpoint("a", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"i"}),
                 R"("owner":"m1")") +
      "," +
      checkpoint("b",
                 op("mm", {"i", "w1"}, {"j"}) + "," + op("tanh", {"j"}, {"k"}) +
                     R"(,{"container":"d","in":["k"]})",
                 R"("owner":"m2")") +
      "," + op("add", {"d.k", "i"}, {"y"}) + "," + loss_of("y");
  return run_stage(layers, protocol, options);
}

const std::string units = R"("units":{"products":{"ops":["mm"]},"tanhs":{"ops":["tanh"]}})";

void check_sound(const ScenarioRun& run) {
  CHECK(run.code() == "none");
  CHECK(run.broken() == no_texts);
  CHECK(run.result.gradients_match == true);
}

/// Checkpointed regions that ran as reentrant ones in forward.
std::int64_t reentrant_frames(const ScenarioRun& run) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    n += event.kind() == Kind::unit_begin && event.phase() == Phase::forward &&
                 event.is_true(Field::reentrant)
             ? 1
             : 0;
  }
  return n;
}

/// A replay for each region, as many ops and bytes.
void check_same_cost(const ScenarioRun& run, const ScenarioRun& other) {
  check_sound(run);
  CHECK(decisions(run) == no_texts);
  CHECK(run.events == other.events);
  CHECK(run.result.resident_bytes == other.result.resident_bytes);
  CHECK(run.result.at_peak.by_class == other.result.at_peak.by_class);
  CHECK(run.result.replay_peak_bytes == other.result.replay_peak_bytes);
  CHECK(run.result.hook_calls == other.result.hook_calls);
  for (const char* name : {"mm", "tanh"})
    CHECK(run.ops(name, Phase::replay) == other.ops(name, Phase::replay));
}

}  // namespace

TEST_CASE("without a selection, and with `false`, whole layers are recomputed", "[sim]") {
  const ScenarioRun torch = run_models("torch");
  CHECK(torch.ops("mm", Phase::replay) == 2);
  for (const char* protocol : {"kept-ops", "kept-callables"}) {
    CAPTURE(protocol);
    for (const std::string& options :
         {std::string(), units, units + R"(,"select":false)", units + R"(,"select":[])"}) {
      CAPTURE(options);
      const ScenarioRun run = run_models(protocol, options);
      check_same_cost(run, torch);
      CHECK(warnings(run) == no_texts);
    }
  }
  check_same_cost(run_models("markers", R"("units":{"u":{"intervals":[["s","e"]]}})"), torch);
}

TEST_CASE("`select` takes all units by `true`, or those that it names", "[sim]") {
  const ScenarioRun all = run_models("kept-ops", units + R"(,"select":true)");
  check_sound(all);
  CHECK(decisions(all) == Texts{"mm T", "tanh T", "mm T", "tanh T"});
  const ScenarioRun named = run_models("kept-ops", units + R"(,"select":["tanhs"])");
  check_sound(named);
  CHECK(decisions(named) == Texts{"mm F", "tanh T", "mm F", "tanh T"});
  CHECK(warnings(named) == no_texts);
}

TEST_CASE("`sub_models` says otherwise for one model", "[sim]") {
  SECTION("none") {
    const ScenarioRun run =
        run_models("kept-ops", units + R"(,"select":true,"sub_models":{"m2":false})");
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "tanh T"});
    CHECK(warnings(run) == no_texts);
  }
  SECTION("another unit") {
    const ScenarioRun run =
        run_models("kept-ops", units + R"(,"select":["tanhs"],"sub_models":{"m1":["products"]})");
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "tanh F", "mm F", "tanh T"});
  }
  SECTION("all, where the others keep none") {
    const ScenarioRun run = run_models("kept-ops", units + R"(,"sub_models":{"m1":true})");
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "tanh T"});
  }
}

TEST_CASE("units are of no account where a scenario is run under another protocol", "[sim]") {
  for (const char* protocol : {"none", "torch", "torch-sac", "exclude-rederive"}) {
    CAPTURE(protocol);
    Scenario scenario =
        *run_models("kept-ops", R"("units":{"u":{"ops":["sin"]},"v":{"ops":[]}},"select":true)")
             .scenario;
    scenario.protocol = protocol;
    scenario.config_json = config_json(protocol_json(scenario), scenario);
    const ScenarioRun run = run_scenario(std::move(scenario));
    check_sound(run);
    CHECK(warnings(run) == no_texts);
  }
}

TEST_CASE("keeps_any false: nothing is asked, and each unit is told to be ignored", "[sim]") {
  const ScenarioRun torch = run_models("torch");
  const ScenarioRun run =
      run_models("kept-ops", units + R"(,"select":["products"],"keeps_any":false)");
  check_same_cost(run, torch);
  CHECK(warnings(run) == Texts{"W-IGNORED m1 products", "W-IGNORED m2 products"});
  SECTION("where none is selected there is nothing to tell") {
    const ScenarioRun none = run_models("kept-ops", units + R"(,"keeps_any":false)");
    check_same_cost(none, torch);
    CHECK(warnings(none) == no_texts);
  }
  SECTION("a unit that stands for nothing is told to be inert, no more") {
    const ScenarioRun inert = run_models(
        "kept-ops", R"("units":{"u":{"ops":["vendor::fused"]}},"select":true,"keeps_any":false)");
    check_same_cost(inert, torch);
    CHECK(warnings(inert) == Texts{"W-INERT m1 u", "W-INERT m2 u"});
  }
}

TEST_CASE("by_selection: a region for which nothing is kept is reentrant", "[sim]") {
  const std::string by_selection = units + R"(,"mode":"by_selection")";
  SECTION("all of them without a selection; containers get their gradients") {
    const ScenarioRun run = run_models("kept-ops", by_selection);
    check_sound(run);
    CHECK(reentrant_frames(run) == 2);
    CHECK(decisions(run) == no_texts);
    SECTION("as torch's own does not") {
      const ScenarioRun as_torch = run_models("torch-reentrant", R"("compat":"torch")");
      CHECK(as_torch.result.gradients_match == false);
      check_sound(run_models("kept-ops", by_selection + R"(,"compat":"torch")"));
    }
  }
  SECTION("none where a unit is selected") {
    const ScenarioRun run = run_models("kept-ops", by_selection + R"(,"select":["tanhs"])");
    check_sound(run);
    CHECK(reentrant_frames(run) == 0);
  }
  SECTION("those of one model where another selects") {
    const ScenarioRun run =
        run_models("kept-ops", by_selection + R"(,"select":true,"sub_models":{"m1":false})");
    check_sound(run);
    CHECK(reentrant_frames(run) == 1);
    CHECK(decisions(run) == Texts{"mm T", "tanh T"});
  }
  SECTION("and unified is the mode without a word") {
    CHECK(run_models("kept-ops", units + R"(,"mode":"unified")").events ==
          run_models("kept-ops", units).events);
    CHECK(reentrant_frames(run_models("kept-ops", units)) == 0);
  }
}

}  // namespace remat
