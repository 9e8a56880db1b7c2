#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/scenario_run.hpp"

// What the message of a run's error names (protocols.md §1.2).

namespace remat {
namespace {

std::string message_of(const ScenarioRun& run) {
  return run.result.error ? run.result.error->code + ": " + run.result.error->message : "none";
}

std::string excluded(const std::string& name, const std::string& body, const std::string& more) {
  return R"({"exclude":")" + name + R"(",)" + more + R"("body":[)" + body + "]}";
}

}  // namespace

TEST_CASE(
    "an error of an excluded region names wrapper, call, input, region, micro-batch and phase",
    "[sim]") {
  // The gradient enters the body by e, which passes no boundary: nothing asks for a replay.
  const std::string body = op("sin", {"a"}, {"y"}) + "," + op("cos", {"a"}, {"e"});
  const std::string stage =
      checkpoint("r", op("scale", {"x"}, {"a"}) + "," +
                          excluded("w", body, R"("kwargs":{"mask":["a"]},"out":["y"],)")) +
      "," + loss_of("e");
  const ScenarioRun escaped = run_stage(stage, "exclude-rederive", "",
                                        R"({"microbatches":2,"actions":["F0.0","F0.1","B0.1"]})");
  CHECK(message_of(escaped) ==
        "E-SLOT-EMPTY: slot x3 of wrapper w#0 in r#1 (micro-batch 1), input kwarg.mask[0], read in "
        "backward: the replay has not reached the wrapper: it was not started");
}

TEST_CASE("an error of placeholders and of nesting names the excluded regions", "[sim]") {
  const std::string unkept = excluded("w", op("sin", {"x"}, {"y"}), R"("save_output":false,)");
  const ScenarioRun read =
      run_stage(checkpoint("r", unkept + "," + op("tanh", {"y"}, {"z"})) + "," + loss_of("z"),
                "exclude-rederive");
  CHECK(
      message_of(read) ==
      "E-PLACEHOLDER: tanh in forward reads the placeholder of wrapper w#0 in r#0 (micro-batch 0) "
      "output 0; set save_output or mark the consumer");
  const std::string inner = excluded("inner", op("sin", {"x"}, {"y"}), "");
  const ScenarioRun nested = run_stage(
      checkpoint("r", excluded("outer", inner, "")) + "," + loss_of("y"), "exclude-rederive");
  CHECK(
      message_of(nested) ==
      "E-SESSION: wrapper inner#0 in r#0 (micro-batch 0) is called inside wrapper outer: excluded "
      "regions do not nest");
}

}  // namespace remat
