#include <catch2/catch.hpp>

#include "tests/sim/scenario_run.hpp"

// observed-torch.md §1 (reentrant, random state), §2 and §3: each test is named after its rule.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

Events replays_of(const ScenarioRun& run) {
  Events replays;
  for (const std::string& event : run.events)
    if (event.starts_with("replay")) replays.push_back(event);
  return replays;
}

/// `n` linear layers in a row from `x` to `y`, with gelu between, each pair of them (or all) a
/// unit.
std::string linears(int n, bool one_unit) {
  std::string text;
  std::string unit;
  std::string in = "x";
  for (int i = 0; i < n; ++i) {
    const std::string out = i + 1 == n ? "y" : "h" + std::to_string(i);
    unit +=
        (unit.empty() ? "" : ",") + linear(i, in, out + "l") + "," + op("gelu", {out + "l"}, {out});
    in = out;
    if (one_unit || i % 2 == 0) continue;
    text += (text.empty() ? "" : ",") + checkpoint("layer" + std::to_string(i / 2), unit);
    unit.clear();
  }
  return one_unit ? checkpoint("stage", unit) : text;
}

const std::string split = R"({"backward":"split"})";

}  // namespace

TEST_CASE("reentrant: no packs in forward, the whole function in replay, one nested graph task",
          "[sim]") {
  const ScenarioRun run = run_stage(
      checkpoint("u", op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"y"})) + "," + loss_of("y"),
      "torch-reentrant");
  CHECK(run.events == Events{"replay u#0", "op sin", "op sin", "end"});
  CHECK(run.kinds(Kind::frame_create) == 0);
  CHECK(run.count("stop") == 0);
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("reentrant: repeats for every backward under retain_graph", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("tanh", {"x"}, {"y"})) + "," + loss_of("y"), "torch-reentrant",
                "", R"({"actions":["F0.0",{"action":"B0.0","retain":true},"B0.0"]})");
  CHECK(replays_of(run) == Events{"replay u#0", "replay u#0"});
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("random state: a replay draws what forward drew, and puts the state back", "[sim]") {
  const std::string drop = R"({"random":"dropout","in":["x"],"out":["d","mask"]},)";
  const std::string after = R"({"random":"dropout","in":["y"],"out":["e","mask2"]},)";
  const std::string stage =
      checkpoint("u", drop + op("tanh", {"d"}, {"y"})) + "," + after + loss_of("e");
  const ScenarioRun kept = run_stage(stage, "torch", "", R"({"microbatches":2})");
  CHECK(kept.result.gradients_match == true);
  CHECK(kept.broken().empty());
  CHECK(kept.kinds(Kind::rng_set) == 4);  // set and put back, twice
  const ScenarioRun lost = run_stage(stage, "torch", R"("preserve_rng":false,"compat":"torch")");
  CHECK(lost.result.gradients_match == false);
  CHECK(lost.broken() == Events{"rng_position", "gradients_equal_plain"});
}

TEST_CASE("selective: kept ops are served, their inputs are still packed", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("sin", {"x"}, {"h"}) + "," + op("mm", {"h", "w0"}, {"m"}) + "," +
                                    op("tanh", {"m"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac", R"("keep":["mm"])");
  CHECK(run.ops("mm", Phase::replay) == 0);
  CHECK(run.ops("sin", Phase::replay) == 1);  // its output is an input of the kept op
  CHECK(run.kinds(Kind::sac_hit) == 1);
  CHECK(run.count("save f0.1") == 1);
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("selective: the tanh counts 2, 4 and 2", "[sim]") {
  const std::string body = R"({"l":{"in":["a"],"out":["b"],"body":[)" +
                           checkpoint("l", linear(0, "a", "h") + "," + op("tanh", {"h"}, {"b"})) +
                           "]}}";
  const auto tanhs = [&](const std::string& protocol, const std::string& options) {
    const ScenarioRun run =
        run_stage(R"({"call":"l","in":["x"],"out":["h"]},{"call":"l","in":["h"],"out":["y"]},)" +
                      loss_of("y"),
                  protocol, options, "{}", body);
    CHECK(run.result.gradients_match == true);
    return run.ops("tanh", Phase::forward) + run.ops("tanh", Phase::replay);
  };
  CHECK(tanhs("none", "") == 2);
  CHECK(tanhs("torch", "") == 4);
  CHECK(tanhs("torch-sac", R"("keep":["tanh"])") == 2);
}

TEST_CASE("selective: early stop leaves cache entries unread, freed with the frame", "[sim]") {
  const std::string stage =
      checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("mm", {"h", "w1"}, {"y"})) + "," +
      loss_of("y");
  const ScenarioRun early = run_stage(stage, "torch-sac", R"("keep":["mm"])");
  CHECK(early.kinds(Kind::sac_hit) == 1);  // of two kept
  CHECK(early.broken().empty());           // and nothing stays
  const ScenarioRun whole = run_stage(stage, "torch-sac", R"("keep":["mm"],"early_stop":false)");
  CHECK(whole.kinds(Kind::sac_hit) == 2);
}

TEST_CASE("selective: a second backward fails at the first kept op, after its input packs",
          "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac", R"("keep":["mm"])",
                R"({"actions":["F0.0",{"action":"B0.0","retain":true},"B0.0"]})");
  CHECK(run.code() == "E-TWICE");
  const Events tail(run.events.end() - 5, run.events.end());
  CHECK(tail ==
        Events{"replay u#0", "save f0.0", "save f0.1", "end", "error builtins.RuntimeError"});
}

TEST_CASE("selective: a kept output written since is an error at the hit, or silently wrong",
          "[sim]") {
  const std::string stage =
      checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + R"(,{"in_place":"mul","in":["h","w1"]},)" +
                          op("tanh", {"h"}, {"y"})) +
      "," + loss_of("y");
  CHECK(run_stage(stage, "torch-sac", R"("keep":["mm"],"compat":"torch")").code() == "E-MUTATED");
  const ScenarioRun allowed = run_stage(
      stage, "torch-sac", R"("keep":["mm"],"compat":"torch","allow_cache_entry_mutation":true)");
  CHECK(allowed.code() == "none");
  CHECK(allowed.result.gradients_match == false);
}

TEST_CASE("selective: an op of the replay without an entry is an error there", "[sim]") {
  const std::string stage =
      checkpoint("u", R"({"branch":"replay","body":[)" + op("cos", {"x"}, {"extra"}) + "]}," +
                          op("tanh", {"x"}, {"y"})) +
      "," + loss_of("y");
  const ScenarioRun run = run_stage(stage, "torch-sac", R"("compat":"torch","early_stop":false)");
  CHECK(run.code() == "E-CACHE-MISS");
  CHECK(run.events.back() == "error builtins.RuntimeError");
}

TEST_CASE("dx and dw: one replay a unit for dx, one a parameter group for dw: 3, 5, 9", "[sim]") {
  const ScenarioRun per_layer =
      run_stage(linears(4, false) + "," + op("scale", {"y"}, {"loss"}), "torch", "", split);
  CHECK(per_layer.count("replay layer0#0") == 3);
  CHECK(per_layer.count("replay layer1#0") == 3);
  const ScenarioRun two_layers =
      run_stage(linears(4, true) + "," + op("scale", {"y"}, {"loss"}), "torch", "", split);
  CHECK(two_layers.count("replay stage#0") == 5);
  const ScenarioRun four_layers =
      run_stage(linears(8, true) + "," + op("scale", {"y"}, {"loss"}), "torch", "", split);
  CHECK(four_layers.count("replay stage#0") == 9);
  for (const ScenarioRun* run : {&per_layer, &two_layers, &four_layers}) {
    CHECK(run->result.gradients_match == true);
    CHECK(run->broken().empty());
  }
  const ScenarioRun one_task = run_stage(linears(8, true) + "," + op("scale", {"y"}, {"loss"}),
                                         "torch", R"("dw_tasks":"one")", split);
  CHECK(one_task.count("replay stage#0") == 2);
  CHECK(one_task.result.gradients_match == true);
}

TEST_CASE("dx and dw: the replays of dw come in the order of the parameters", "[sim]") {
  const ScenarioRun run =
      run_stage(linears(4, false) + "," + op("scale", {"y"}, {"loss"}), "torch", "", split);
  CHECK(replays_of(run) == Events{"replay layer1#0", "replay layer0#0", "replay layer0#0",
                                  "replay layer0#0", "replay layer1#0", "replay layer1#0"});
}

TEST_CASE("dx and dw: what dw did not read piles up until the graph goes", "[sim]") {
  const auto peak = [](const std::string& protocol) {
    return run_stage(linears(8, true) + "," + op("scale", {"y"}, {"loss"}), protocol, "", split)
        .result.at_peak.total;
  };
  CHECK(peak("torch") > peak("none"));
}

TEST_CASE("dx and dw: a parameter reached without a slot needs no replay", "[sim]") {
  const std::string unit =
      checkpoint("u", op("add", {"x", "b0"}, {"h"}) + "," + op("sin", {"h"}, {"y"}));
  const ScenarioRun run = run_stage(unit + "," + op("scale", {"y"}, {"loss"}), "torch", "", split);
  CHECK(run.count("replay u#0") == 1);
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("dx and dw under one exec group: one replay, then the second read is refused", "[sim]") {
  const std::string schedule =
      R"({"actions":["F0.0",{"action":"DX0.0","group":7},{"action":"DW0.0","group":7}]})";
  const ScenarioRun run =
      run_stage(linears(2, true) + "," + op("scale", {"y"}, {"loss"}), "torch", "", schedule);
  CHECK(run.code() == "E-TWICE");
  CHECK(run.count("replay stage#0") == 1);
  CHECK(run.events.back() == "error torch.utils.checkpoint.CheckpointError");
}

TEST_CASE("dx and dw: a selective region fails in dw, a reentrant one in dx", "[sim]") {
  const ScenarioRun selective = run_stage(linears(2, true) + "," + op("scale", {"y"}, {"loss"}),
                                          "torch-sac", R"("keep":["addmm"])", split);
  CHECK(selective.code() == "E-TWICE");
  const ScenarioRun reentrant = run_stage(linears(2, true) + "," + op("scale", {"y"}, {"loss"}),
                                          "torch-reentrant", "", split);
  CHECK(reentrant.events == Events{"error builtins.RuntimeError"});
}

TEST_CASE("dx and dw: interleaved micro-batches replay as the actions come", "[sim]") {
  const ScenarioRun run =
      run_stage(linears(2, false) + "," + op("scale", {"y"}, {"loss"}), "torch", "",
                R"({"microbatches":2,"actions":["F0.0","F0.1","DX0.0","DX0.1","DW0.0","DW0.1"]})");
  CHECK(replays_of(run) == Events{"replay layer0#0", "replay layer0#1", "replay layer0#0",
                                  "replay layer0#0", "replay layer0#1", "replay layer0#1"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("values: a view that reaches into the holes of a tensor shows what lies there", "[sim]") {
  const auto gradient_of = [](const std::string& view) {
    const ScenarioRun run = run_stage(R"({"op":"sin","in":["x"],"out":["h"],"stride":[16,1]},)" +
                                          view + op("mul", {"h", "v"}, {"y"}) + "," + loss_of("y"),
                                      "none");
    REQUIRE(run.result.contributions.size() == 1);
    return run.result.contributions[0].value;
  };
  const std::string within =
      R"({"view":"view","in":["h"],"out":["v"],"shape":[4,8],"stride":[16,1]},)";
  const std::string beside =
      R"({"view":"as_strided","in":["h"],"out":["v"],"shape":[4,8],"stride":[8,1]},)";
  CHECK_FALSE(gradient_of(within) == gradient_of(beside));
  // A storage that a replay makes anew has other holes: reading them is never right.
  const ScenarioRun run =
      run_stage(checkpoint("u", R"({"op":"sin","in":["x"],"out":["h"],"stride":[16,1]},)" + beside +
                                    op("tanh", {"v"}, {"y"})) +
                "," + loss_of("y"));
  CHECK(run.code() == "E-META");
}

TEST_CASE("dx and dw: a tied parameter gets each gradient once; torch counts it twice", "[sim]") {
  // w0 meets dx's graph at both matmuls, the upper of which feeds the lower.
  const std::string tied = op("mm", {"x", "w0"}, {"h"}) + "," + op("sin", {"h"}, {"s"}) + "," +
                           op("mm", {"s", "w0"}, {"y"}) + "," + op("scale", {"y"}, {"loss"});
  CHECK(run_stage(tied, "torch", "", split).result.gradients_match == true);
  CHECK(run_stage(tied, "torch", R"("dw_tasks":"one")", split).result.gradients_match == true);
  CHECK(run_stage(tied, "torch", R"("compat":"torch")", split).result.gradients_match == false);
}

TEST_CASE("dx and dw: a parameter that meets two groups makes them one", "[sim]") {
  const std::string stage = op("addmm", {"b1", "x", "w0"}, {"h"}) + "," + op("sin", {"h"}, {"s"}) +
                            "," + op("addmm", {"b2", "s", "w1"}, {"k"}) + "," +
                            op("mm", {"k", "w0"}, {"y"}) + "," + op("scale", {"y"}, {"loss"});
  const ScenarioRun run = run_stage(stage, "torch", "", split);
  CHECK(run.result.gradients_match == true);
  CHECK(run.result.contributions.size() == 5);  // x, and each of the four parameters
}

TEST_CASE("selective: a kept draw leaves the generator where it would have", "[sim]") {
  const std::string stage =
      checkpoint("u", R"({"random":"dropout","in":["x"],"out":["d","m"],"keep":true},)"
                      R"({"random":"dropout","in":["d"],"out":["e","n"]},)" +
                          op("tanh", {"e"}, {"y"})) +
      "," + loss_of("y");
  const ScenarioRun strict = run_stage(stage, "torch-sac");
  CHECK(strict.result.gradients_match == true);
  CHECK(strict.broken().empty());
  const ScenarioRun torch = run_stage(stage, "torch-sac", R"("compat":"torch")");
  CHECK(torch.result.gradients_match == false);
}

TEST_CASE("selective: the policy is not asked about detach", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("sin", {"x"}, {"h"}) + "," + op("detach", {"h"}, {"d"}) + "," +
                                    op("mul", {"h", "d"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac", R"("keep":["detach"])");
  CHECK(run.kinds(Kind::sac_decide) == 2);  // sin and mul
  CHECK(run.kinds(Kind::sac_hit) == 0);
}

TEST_CASE("selective: CPU_OFFLOAD policies recompute in eager: what is not kept runs again",
          "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac");
  CHECK(run.ops("mm", Phase::replay) == 1);
  CHECK(run.kinds(Kind::sac_hit) == 0);
}

TEST_CASE("selective: hooks around the region do not see what the policy keeps", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac", R"("keep":["mm"],"ambient_hooks":true,"compat":"torch")");
  std::int64_t n_plain = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() == Kind::pack && run.trace[i].text(Field::role) != "checkpointed")
      ++n_plain;
  }
  CHECK(n_plain == 1);  // the region's argument alone
  CHECK(run.kinds(Kind::sac_hit) == 1);
}

TEST_CASE("a run that fails names the event of its error, not one that unwinding wrote after it",
          "[sim]") {
  const ScenarioRun run = run_stage(R"({"checkpoint":"r","body":[)" + op("sin", {"x"}, {"a"}) +
                                    R"(,{"raise":"builtins.ValueError","in":"replay"},)" +
                                    op("tanh", {"a"}, {"y"}) + "]}," + op("sum", {"y"}, {"loss"}));
  REQUIRE(run.code() == "E-USER");
  REQUIRE(run.result.error_seq < std::ssize(run.trace));
  CHECK(run.trace[static_cast<std::size_t>(run.result.error_seq)].kind() == Kind::error);
}
