#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/scenario_run.hpp"

namespace remat {
namespace {

std::string region(const std::string& body) {
  return R"({"checkpoint":"r","body":[)" + body + "]}," + op("sum", {"y"}, {"loss"});
}

std::int64_t replayed(const ScenarioRun& run, const std::string& name) {
  return run.ops(name, Phase::replay);
}

}  // namespace

TEST_CASE("P10 never keeps what writes in place, whatever the policy says", "[sim]") {
  const ScenarioRun run = run_stage(
      region(op("scale", {"x"}, {"k"}) + R"(,{"in_place":"scale","in":["k"],"keep":true},)" +
             op("mul", {"k", "k"}, {"z"}) + "," + op("tanh", {"z"}, {"y"})),
      "torch-sac");
  CHECK(run.code() == "none");
  CHECK(run.broken().empty());
  CHECK(run.result.gradients_match == true);
  CHECK(run.kinds(Kind::sac_hit) == 0);
  CHECK(replayed(run, "scale") == 2);
}

TEST_CASE("P10 keeps every n-th call of an op where its policy counts them", "[sim]") {
  const std::string body = op("mm", {"x", "w0"}, {"a"}) + "," + op("mm", {"a", "w1"}, {"b"}) + "," +
                           op("mm", {"b", "w2"}, {"c"}) + "," + op("tanh", {"c"}, {"y"});
  const ScenarioRun all = run_stage(region(body), "torch-sac", R"("keep":["mm"])");
  CHECK(all.kinds(Kind::sac_hit) == 3);
  const ScenarioRun counted =
      run_stage(region(body), "torch-sac", R"("keep":["mm"],"keep_every":2)");
  CHECK(counted.kinds(Kind::sac_hit) == 2);  // the first and the third
  CHECK(replayed(counted, "mm") == 1);
  CHECK(counted.broken().empty());
  CHECK(counted.result.gradients_match == true);
}

TEST_CASE("P2 hands a gradient to outputs in a container, torch does not", "[sim]") {
  const std::string stage = R"({"checkpoint":"r","body":[)" + op("sin", {"x"}, {"y"}) +
                            R"(,{"container":"d","in":["y"]}]},)" +
                            op("add", {"d.y", "x"}, {"loss"});
  const ScenarioRun strict = run_stage(stage, "torch-reentrant");
  CHECK(strict.result.gradients_match == true);
  // The loss is finite, the gradient that went through the region is not there (protocols.md P2).
  const ScenarioRun as_torch = run_stage(stage, "torch-reentrant", R"("compat":"torch")");
  CHECK(as_torch.code() == "none");
  CHECK(as_torch.result.gradients_match == false);
}

}  // namespace remat
