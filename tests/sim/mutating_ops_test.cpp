#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/unit_run.hpp"

// Ops that write by their schema where a save unit is to keep what they make (protocols.md P8,
// I-28, A7).

namespace remat {
namespace {

void check_sound(const ScenarioRun& run) {
  CHECK(run.code() == "none");
  CHECK(run.broken() == no_texts);
  CHECK(run.result.gradients_match == true);
}

ScenarioRun run_layer(const std::string& body, const std::string& protocol,
                      const std::string& options) {
  return run_stage(checkpoint("l", body) + "," + loss_of("y"), protocol, options);
}

const std::string products = op("mm", {"x", "w0"}, {"h"}) + "," + in_place("record_stream", "h") +
                             "," + op("tanh", {"h"}, {"y"});

}  // namespace

TEST_CASE("record_stream writes nothing: no unit keeps it, and nobody is told", "[sim]") {
  const auto check_kept = [](const ScenarioRun& run) {
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "record_stream F", "tanh T"});
    CHECK(warnings(run) == no_texts);
    CHECK(run.kinds(Kind::mutate) == 0);
    CHECK(run.ops("mm", Phase::replay) == 0);
    // Its region's last save is tanh's, so that a replay comes by it.
    CHECK(run.ops("record_stream", Phase::replay) == 1);
  };
  check_kept(run_layer(products, "kept-ops", unit(R"("ops":["mm","record_stream","tanh"])")));
  check_kept(run_layer(callable("f", products), "kept-callables", unit(R"("callables":["f"])")));
  SECTION("markers, which refuse ops that write, let it be") {
    check_kept(run_layer(mark("s") + "," + products + "," + mark("e"), "markers",
                         unit(R"("intervals":[["s","e"]])")));
  }
  SECTION("a unit that stands for nothing else keeps nothing, which is told") {
    const ScenarioRun run = run_layer(products, "kept-ops", unit(R"("ops":["record_stream"])"));
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm F", "record_stream F", "tanh F"});
    CHECK(warnings(run) == Texts{"W-UNDER-KEPT u"});
  }
}

TEST_CASE("record_stream of what is saved or kept is no write to it", "[sim]") {
  const std::string body = op("sin", {"x"}, {"h"}) + "," + op("tanh", {"h"}, {"y"}) + "," +
                           in_place("record_stream", "h") + "," + in_place("record_stream", "y");
  for (const char* protocol : {"none", "torch", "torch-sac", "exclude-rederive", "offload"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_layer(body, protocol, "");
    check_sound(run);
    CHECK(run.kinds(Kind::mutate) == 0);
  }
  const ScenarioRun kept = run_layer(body, "torch-sac", R"("keep":["sin","record_stream"])");
  check_sound(kept);
  CHECK(decisions(kept) == Texts{"sin T", "tanh F", "record_stream F", "record_stream F"});
}

TEST_CASE("ops that write are told one by one, each once for a unit of a model", "[sim]") {
  const std::string writes = op("mm", {"x", "w0"}, {"h"}) + "," + in_place("scale", "h") + "," +
                             in_place("neg", "h") + "," + in_place("scale", "h") + "," +
                             in_place("neg", "h") + "," + op("tanh", {"h"}, {"y"});
  const ScenarioRun two = run_layer(writes, "kept-ops", unit(R"("ops":["scale","neg","tanh"])"));
  check_sound(two);
  CHECK(warnings(two) == Texts{"W-MUTATING u scale", "W-MUTATING u neg"});
  SECTION("in every layer, step and micro-batch together") {
    const std::string layers =
        checkpoint("a", writes) + "," +
        checkpoint("b", op("mm", {"y", "w1"}, {"i"}) + "," + in_place("neg", "i") + "," +
                            op("tanh", {"i"}, {"z"})) +
        "," + loss_of("z");
    const ScenarioRun run = run_stage(layers, "kept-ops", unit(R"("ops":["scale","neg","tanh"])"),
                                      R"({"microbatches":2})", "{}", "2");
    check_sound(run);
    CHECK(warnings(run) == Texts{"W-MUTATING u scale", "W-MUTATING u neg"});
  }
  SECTION("each unit that asks for the op is told of it") {
    const ScenarioRun run = run_layer(
        writes, "kept-ops",
        R"("units":{"u":{"ops":["scale","tanh"]},"v":{"ops":["scale","tanh"]}},"select":true)");
    check_sound(run);
    CHECK(warnings(run) == Texts{"W-MUTATING u scale", "W-MUTATING v scale"});
  }
}

}  // namespace remat
