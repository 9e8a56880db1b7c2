#include <catch2/catch.hpp>
#include <string>

#include "sim/scenario_writer.hpp"
#include "tests/sim/scenario_run.hpp"

namespace remat {
namespace {

/// Time of a product of `x` and a weight, and of a loss that costs nothing.
std::int64_t product_ns(const std::string& costs, const std::string& schedule) {
  const std::string stage =
      op("mm", {"x", "w0"}, {"y"}, costs) + "," + op("sum", {"y"}, {"loss"}, R"("cost_ns":0)");
  return run_stage(stage, "torch", "", schedule).result.end.ns;
}

}  // namespace

TEST_CASE("backward takes an op's cost once, or so much for each gradient", "[sim]") {
  const std::string full = R"({"backward":"full"})";
  const std::string split = R"({"backward":"split"})";
  const std::string half = R"({"actions":["F0.0","DX0.0"]})";
  const std::string once = R"("cost_ns":5)";
  CHECK(product_ns(once, full) == 5 + 5);
  CHECK(product_ns(once, half) == 5 + 5);
  const std::string each = R"("cost_ns":5,"gradient_cost_ns":7)";
  CHECK(product_ns(each, full) == 5 + 7 + 7);
  CHECK(product_ns(each, half) == 5 + 7);
  CHECK(product_ns(each, split) == 5 + 7 + 7);
}

TEST_CASE("outputs of several types are written as such", "[sim]") {
  const ScenarioRun run = run_stage(
      op("dropout", {"x"}, {"y", "mask"}, R"("dtypes":["bf16","bool"],"shapes":[[4,8],[4,8]])") +
      "," + loss_of("y"));
  // 4 · 8 elements, of which the mask is kept, and the loss.
  CHECK(run.result.resident_bytes == 4 * 8 + 2);
  const ScenarioRun again = run_text(scenario_json(*run.scenario, {}));
  CHECK(again.result.resident_bytes == run.result.resident_bytes);
  CHECK(again.events == run.events);
  CHECK(again.result.end == run.result.end);
}

}  // namespace remat
