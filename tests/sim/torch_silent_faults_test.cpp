#include <catch2/catch.hpp>

#include "model/errors.hpp"
#include "tests/sim/scenario_run.hpp"

// observed-torch.md §6: what torch does silently is an error by default (strict), and what torch
// does under compat: torch, where the invariants still see it.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

struct Both {
  ScenarioRun strict;
  ScenarioRun torch;
};

Both run_both(const std::string& stage, const std::string& options = "",
              const std::string& protocol = "torch", const std::string& schedule = "{}") {
  const std::string more = options.empty() ? "" : options + ",";
  return {run_stage(stage, protocol, more + R"("compat":"strict")", schedule),
          run_stage(stage, protocol, more + R"("compat":"torch")", schedule)};
}

}  // namespace

TEST_CASE("an argument of the region written between forward and backward raises in both",
          "[sim]") {
  const Both runs =
      run_both(op("sin", {"x"}, {"h"}) + "," + checkpoint("u", op("tanh", {"h"}, {"y"})) + "," +
               loss_of("y") + R"(,{"update":"h"})");
  CHECK(runs.strict.code() == "E-MUTATED");
  CHECK(runs.torch.code() == "E-MUTATED");
  CHECK(runs.torch.events == Events{"error builtins.RuntimeError"});  // before the replay begins
}

TEST_CASE("silent: an argument inside a container written in between", "[sim]") {
  const Both runs = run_both(op("sin", {"x"}, {"h"}) + R"(,{"container":"d","in":["h"]},)" +
                             checkpoint("u", op("tanh", {"d.h"}, {"y"})) + "," + loss_of("y") +
                             R"(,{"update":"h"})");
  CHECK(runs.strict.code() == "E-MUTATED");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK(runs.torch.broken() == Events{"version_unchanged", "gradients_equal_plain"});
}

TEST_CASE("silent: ambient saved-tensor hooks turn the version check of arguments off", "[sim]") {
  const Both runs =
      run_both(op("sin", {"x"}, {"h"}) + "," + checkpoint("u", op("tanh", {"h"}, {"y"})) + "," +
                   loss_of("y") + R"(,{"update":"h"})",
               R"("ambient_hooks":true)");
  CHECK(runs.strict.code() == "E-MUTATED");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.broken() == Events{"version_unchanged", "gradients_equal_plain"});
}

TEST_CASE("silent: a parameter updated between forward and replay", "[sim]") {
  const Both runs = run_both(checkpoint("u", linear(0, "x", "h") + "," + op("tanh", {"h"}, {"y"})) +
                             "," + loss_of("y") + R"(,{"update":"w0"})");
  CHECK(runs.strict.code() == "E-MUTATED");
  CHECK(runs.torch.code() == "none");
  CHECK_FALSE(runs.torch.result.gradients_match.has_value());  // the plain run raises
  CHECK(runs.torch.broken() == Events{"version_unchanged"});
}

TEST_CASE("silent: a saved intermediate overwritten in the region, where the replay reaches it",
          "[sim]") {
  const std::string body = op("sin", {"x"}, {"h"}) + "," + op("mul", {"h", "h"}, {"k"}) +
                           R"(,{"in_place":"scale","in":["h"]},)" + op("sin", {"h"}, {"j"}) + "," +
                           op("add", {"k", "j"}, {"y"});
  const Both whole = run_both(checkpoint("u", body) + "," + loss_of("y"), R"("early_stop":false)");
  CHECK(whole.strict.code() == "E-SLOT-STALE");
  CHECK(whole.torch.code() == "none");
  CHECK(whole.torch.broken() == Events{"version_unchanged"});
  // Saved last, written after: early stop ends the replay before the write.
  const std::string late = op("sin", {"x"}, {"h"}) + "," + op("mul", {"h", "h"}, {"y"}) +
                           R"(,{"no_grad":[{"in_place":"scale","in":["h"]}]})";
  const Both cut = run_both(checkpoint("u", late) + "," + loss_of("y"));
  CHECK(cut.strict.code() == "none");
  CHECK(cut.torch.code() == "none");
}

TEST_CASE("silent: the replay saves more than forward, and early stop comes first", "[sim]") {
  const std::string body = R"({"branch":"replay","body":[)" + op("cos", {"x"}, {"extra"}) + "]}," +
                           op("sin", {"x"}, {"h"}) + "," + op("tanh", {"h"}, {"y"});
  const Both runs = run_both(checkpoint("u", body) + "," + loss_of("y"));
  CHECK(runs.strict.code() == "E-META");  // another value in the slot than was packed
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK_FALSE(runs.torch.broken().empty());
  const Both whole = run_both(checkpoint("u", body) + "," + loss_of("y"), R"("early_stop":false)");
  CHECK(whole.torch.code() == "E-MORE");
  CHECK(whole.strict.code() == "E-MORE");
}

TEST_CASE("silent: the replay takes another path with equal saves", "[sim]") {
  const std::string body = R"({"branch":"forward","body":[)" + op("sin", {"x"}, {"h"}) +
                           R"(]},{"branch":"replay","body":[)" + op("cos", {"x"}, {"h"}) + "]}," +
                           op("tanh", {"h"}, {"y"});
  const Both runs = run_both(checkpoint("u", body) + "," + loss_of("y"));
  CHECK(runs.strict.code() == "E-META");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK(runs.torch.broken() == Events{"saved_lists_match", "gradients_equal_plain"});
}

TEST_CASE("silent: random draws that the replay does not repeat", "[sim]") {
  const std::string stage = checkpoint("u", R"({"random":"dropout","in":["x"],"out":["d","m"]},)" +
                                                op("tanh", {"d"}, {"y"})) +
                            "," + loss_of("y");
  const Both runs = run_both(stage, R"("preserve_rng":false)");
  CHECK(runs.strict.code() == "E-META");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK(runs.torch.broken() == Events{"rng_position", "gradients_equal_plain"});
}

TEST_CASE("silent: a kept output that may be written", "[sim]") {
  const std::string stage =
      checkpoint("u", op("sin", {"x"}, {"h"}) + R"(,{"in_place":"scale","in":["h"]},)" +
                          op("tanh", {"h"}, {"y"})) +
      "," + loss_of("y");
  const Both runs =
      run_both(stage, R"("keep":["sin"],"allow_cache_entry_mutation":true)", "torch-sac");
  CHECK(runs.strict.code() == "E-MUTATED");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK_FALSE(runs.torch.broken().empty());
}

TEST_CASE("a reentrant region's argument written in between raises at its unpack", "[sim]") {
  const Both runs =
      run_both(op("sin", {"x"}, {"h"}) + "," + checkpoint("u", op("tanh", {"h"}, {"y"})) + "," +
                   loss_of("y") + R"(,{"update":"h"})",
               "", "torch-reentrant");
  CHECK(runs.torch.events == Events{"error builtins.RuntimeError"});
  CHECK(runs.torch.code() == "E-MUTATED");
}

TEST_CASE("plain: a saved tensor written in between raises at its node", "[sim]") {
  const ScenarioRun run = run_stage(op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"y"}) + "," +
                                        loss_of("y") + R"(,{"update":"h"})",
                                    "none");
  CHECK(run.code() == "E-MUTATED");
  CHECK(run.result.error->type == "builtins.RuntimeError");
}

TEST_CASE("backward twice without retain: an error at the first released node, no replay",
          "[sim]") {
  const ScenarioRun run = run_stage(checkpoint("u", op("tanh", {"x"}, {"y"})) + "," + loss_of("y"),
                                    "torch", "", R"({"actions":["F0.0","B0.0","B0.0"]})");
  CHECK(run.count("replay u#0") == 1);
  CHECK(run.code() == "E-TWICE");
  CHECK(run.events.back() == "error builtins.RuntimeError");
}

TEST_CASE("reentrant, no argument requires grad: the output does not either", "[sim]") {
  const ScenarioRun run =
      run_text(R"({"format":"rematsim-scenario","version":1,"program":{"loss":"loss",)"
               R"("inputs":{"x":{"shape":[4,8]}},"params":{"w":{"shape":[8,8]}},"stages":[[)" +
               checkpoint("u", op("mm", {"x", "w"}, {"y"})) + "," + loss_of("y") +
               R"(]]},"protocol":{"name":"torch-reentrant"}})");
  CHECK(run.code() == "E-GRAD-NONE");
  CHECK(run.events == Events{"error builtins.RuntimeError"});
}

TEST_CASE("a user's exception in forward goes through unchanged, and no scope stays open",
          "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("sin", {"x"}, {"h"}) + R"(,{"raise":"builtins.ValueError"},)" +
                                    op("tanh", {"h"}, {"y"})) +
                "," + loss_of("y"));
  CHECK(run.code() == "E-USER");
  CHECK(run.events == Events{"error builtins.ValueError"});
  CHECK(run.broken().empty());
}

TEST_CASE("silent: what a reentrant region reads past its arguments gets no gradient", "[sim]") {
  const std::string stage = op("sin", {"x"}, {"h"}) + "," + op("cos", {"x"}, {"k"}) + "," +
                            checkpoint("u", op("mul", {"h", "k"}, {"y"}), R"("in":["h"])") + "," +
                            loss_of("y");
  const Both runs = run_both(stage, "", "torch-reentrant");
  CHECK(runs.strict.code() == "E-GRAD-NONE");
  CHECK(runs.torch.code() == "none");
  CHECK(runs.torch.result.gradients_match == false);
  CHECK(runs.torch.broken() == Events{"gradients_equal_plain"});
}

TEST_CASE("a name that only forward's branch gave a value is an error in the replay", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", R"({"branch":"forward","body":[)" + op("sin", {"x"}, {"h"}) +
                                    "]}," + op("sin", {"h"}, {"y"})) +
                "," + loss_of("y"));
  CHECK(run.code() == "E-USER");
  CHECK(run.events.back() == "error builtins.UnboundLocalError");
}

TEST_CASE("a parameter written under no_grad stays the leaf that it is", "[sim]") {
  const ScenarioRun run = run_stage(R"({"no_grad":[{"in_place":"scale","in":["w0"]}]},)" +
                                        op("mm", {"x", "w0"}, {"y"}) + "," + loss_of("y"),
                                    "none");
  std::vector<std::string> leaves;
  for (const Contribution& contribution : run.result.contributions)
    leaves.push_back(run.scenario->program.values[contribution.leaf].name);
  CHECK(leaves == Events{"x", "w0"});
}

TEST_CASE("sums that no machine can hold are refused or stay at the largest", "[sim]") {
  const std::string long_ops = op("sin", {"x"}, {"h"}, R"("cost_ns":9223372036854775807)") + "," +
                               op("sin", {"h"}, {"y"}, R"("cost_ns":9223372036854775807)");
  CHECK(run_stage(long_ops + "," + loss_of("y"), "none").result.end.ns == INT64_MAX);
  const std::string huge = R"("shape":[1152921504606846976])";
  CHECK_THROWS_AS(
      run_stage(op("empty", {}, {"a"}, huge) + "," + op("empty", {}, {"b"}, huge) + "," +
                    op("empty", {}, {"c"}, huge) + "," + op("add", {"a", "b"}, {"d"}) + "," +
                    op("add", {"d", "c"}, {"e"}) + "," + loss_of("x"),
                "none"),
      InputError);
  // What replays and backward would hold of them is summed up before anything runs.
  const std::string region =
      checkpoint("u", op("empty", {}, {"a"}, huge) + "," + op("sin", {"a"}, {"b"}) + "," +
                          op("sin", {"b"}, {"c"}) + "," + op("mul", {"c", "b"}, {"y"}));
  const std::string both_regions = region + "," + checkpoint("v", op("sin", {"y"}, {"z"}));
  CHECK_THROWS_AS(run_stage(both_regions + "," + loss_of("z"), "torch"), InputError);
  CHECK_THROWS_AS(run_stage(both_regions + "," + loss_of("z"), "torch-reentrant"), InputError);
  const std::string longest = R"("dtype":"i8","shape":[0,9223372036854775807])";
  CHECK(run_stage(op("empty", {}, {"a"}, longest) + "," + op("cat", {"a", "a"}, {"b"}) + "," +
                      loss_of("x"),
                  "none")
            .code() == "none");
}
