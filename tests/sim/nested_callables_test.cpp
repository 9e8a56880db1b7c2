#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/unit_run.hpp"

// How far the scope of a save unit's callable goes (protocols.md P9).

namespace remat {
namespace {

void check_sound(const ScenarioRun& run) {
  CHECK(run.code() == "none");
  CHECK(run.broken() == no_texts);
  CHECK(run.result.gradients_match == true);
}

}  // namespace

TEST_CASE("kept-callables: a callable goes on in the regions that run in it", "[sim]") {
  const std::string layer =
      checkpoint("l", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"i"})) + ",";
  const std::string unit_f = unit(R"("callables":["f"])");
  SECTION("one that a callable calls") {
    const ScenarioRun run =
        run_stage(callable("f", layer + op("sin", {"i"}, {"y"})) + "," + loss_of("y"),
                  "kept-callables", unit_f);
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "tanh T"});
    CHECK(warnings(run) == no_texts);
    CHECK(run.ops("mm", Phase::replay) == 0);
  }
  SECTION("one that lies in another, in forward and again in the outer one's replay") {
    const std::string body =
        callable("f", layer + op("sin", {"i"}, {"j"})) + "," + op("cos", {"j"}, {"y"});
    const ScenarioRun run =
        run_stage(checkpoint("outer", body) + "," + loss_of("y"), "kept-callables", unit_f);
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "tanh T", "sin T", "cos F", "mm T", "tanh T"});
  }
  SECTION("not one behind it") {
    const ScenarioRun run = run_stage(callable("f", op("sin", {"x"}, {"x"})) + "," + layer +
                                          op("sin", {"i"}, {"y"}) + "," + loss_of("y"),
                                      "kept-callables", unit_f);
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm F", "tanh F"});
    CHECK(warnings(run) == Texts{"W-UNDER-KEPT u"});
  }
}

}  // namespace remat
