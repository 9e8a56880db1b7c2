#include <catch2/catch.hpp>
#include <map>

#include "tests/sim/scenario_run.hpp"

// observed-torch.md §8: the rules by which backward follows from forward, R1 to R14. Those that
// speak of recordings (R3, R11, R13) stand in tests/traces/rebuild_test.cpp too.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

Events with_prefix(const ScenarioRun& run, const std::string& prefix) {
  Events events;
  for (const std::string& event : run.events)
    if (event.starts_with(prefix)) events.push_back(event);
  return events;
}

/// Names of the tensors that the region's slots were packed with, in order.
Events packed(const ScenarioRun& run) {
  std::map<std::int64_t, std::string> names;
  Events order;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::tensor) names[*event.integer(Field::t)] = event.text(Field::name);
    if (event.kind() != Kind::pack || event.text(Field::role) != "checkpointed") continue;
    const auto known = names.find(*event.tensor(Field::tensor)->tensor);
    order.push_back(known == names.end() ? "made" : known->second);
  }
  return order;
}

/// Nodes in the order in which they ran.
Events nodes(const ScenarioRun& run, Phase phase) {
  Events order;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::node_begin && event.phase() == phase)
      order.emplace_back(run.trace.names()[event.node(Field::node)->name]);
  }
  return order;
}

}  // namespace

TEST_CASE("R1: a replay is the forward, literally, up to the last pack", "[sim]") {
  const std::string inner = checkpoint("inner", op("sin", {"h"}, {"k"}));
  const ScenarioRun run =
      run_stage(checkpoint("u", op("cos", {"x"}, {"h"}) + "," + inner + "," +
                                    op("add", {"k", "h"}, {"m"}) + "," + op("tanh", {"m"}, {"y"})) +
                "," + loss_of("y"));
  // The nested unit shows its op only: no replay, save or stop of its own.
  const Events outer(run.events.begin(), run.events.begin() + 9);
  CHECK(outer == Events{"replay u#0", "save f0.0", "op cos", "save f0.1", "op sin", "op add",
                        "op tanh", "save f0.2", "stop"});
}

TEST_CASE("R2: nodes unpack newest first; within a node inputs by their C++ names, then outputs",
          "[sim]") {
  const ScenarioRun mm =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"y"})) + "," + loss_of("y"));
  CHECK(packed(mm) == Events{"w0", "x"});  // mat2 before self
  const ScenarioRun addmm = run_stage(checkpoint("u", linear(0, "x", "y")) + "," + loss_of("y"));
  CHECK(packed(addmm) == Events{"x", "w0"});  // mat1 before mat2
  const ScenarioRun norm =
      run_stage(checkpoint("u", op("native_layer_norm", {"x", "b0", "b1"}, {"y", "mean", "rstd"})) +
                "," + loss_of("y"));
  CHECK(packed(norm) == Events{"b1", "x", "b0", "made", "made"});  // bias, input, weight, outputs
  CHECK(with_prefix(norm, "unpack") ==
        Events{"unpack f0.0", "unpack f0.1", "unpack f0.2", "unpack f0.3", "unpack f0.4"});
  CHECK(norm.result.gradients_match == true);
}

TEST_CASE("R4: backward runs what the root reaches, grad only what leads to an input", "[sim]") {
  const std::string stage = R"({"view":"t","in":["w0"],"out":["wt"]},)" +
                            op("mm", {"x", "wt"}, {"h"}) + "," + op("scale", {"h"}, {"loss"});
  CHECK(nodes(run_stage(stage), Phase::backward) == Events{"scale", "mm", "t"});
  const ScenarioRun split = run_stage(stage, "torch", "", R"({"backward":"split"})");
  CHECK(nodes(split, Phase::backward_input) == Events{"scale", "mm"});
  CHECK(nodes(split, Phase::backward_weight) == Events{"mm", "t"});
  CHECK(split.result.gradients_match == true);
}

TEST_CASE("R4: a node that runs unpacks all its slots, also those the task does not need",
          "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"y"})) + "," + op("scale", {"y"}, {"loss"}),
                "torch", "", R"({"backward":"split"})");
  CHECK(with_prefix(run, "unpack") ==
        Events{"unpack f0.0", "unpack f0.1", "unpack f0.0", "unpack f0.1"});
}

TEST_CASE("R5: without retain a node that ran is released; nodes without saves pass", "[sim]") {
  const ScenarioRun run = run_stage(checkpoint("u", op("tanh", {"x"}, {"h"})) + "," +
                                        op("scale", {"h"}, {"y"}) + "," + loss_of("y"),
                                    "torch", "", R"({"actions":["F0.0","B0.0","B0.0"]})");
  const Events ran = nodes(run, Phase::backward);
  CHECK(ran == Events{"sum", "scale", "tanh", "sum", "scale", "tanh"});
  CHECK(run.code() == "E-TWICE");
  CHECK(run.count("replay u#0") == 1);
}

TEST_CASE("R6: a nested trigger fetches its inputs first, which may replay the parent", "[sim]") {
  const std::string inner =
      checkpoint("inner", op("sin", {"h"}, {"k"}) + "," + op("tanh", {"k"}, {"y"}));
  const ScenarioRun run =
      run_stage(checkpoint("outer", op("cos", {"x"}, {"h"}) + "," + inner) + "," + loss_of("y"));
  CHECK(run.events == Events{"replay outer#0", "save f0.0", "op cos", "save f0.1", "stop", "end",
                             "unpack f0.1", "replay inner#0", "save f1.0", "op sin", "op tanh",
                             "save f1.1", "stop", "end", "unpack f1.1", "unpack f1.0",
                             "unpack f0.0"});
}

TEST_CASE("R7: parameters that meet at one node are one group, in the order first seen", "[sim]") {
  // One weight used twice: its two meeting points and those of the biases overlap.
  const std::string shared = checkpoint(
      "u", op("addmm", {"b0", "x", "w0"}, {"h"}) + "," + op("addmm", {"b1", "h", "w0"}, {"y"}));
  const ScenarioRun run = run_stage(shared + "," + op("scale", {"y"}, {"loss"}), "torch", "",
                                    R"({"backward":"split"})");
  CHECK(run.count("replay u#0") == 2);  // dx, and one group for all three
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("R7: a stage's output that is a view cannot be detached after dx", "[sim]") {
  const ScenarioRun run = run_stage(
      checkpoint("u", op("sin", {"x"}, {"h"})) + R"(,{"view":"view","in":["h"],"out":["loss"]})",
      "torch", "", R"({"backward":"split"})");
  CHECK(run.events.back() == "error builtins.RuntimeError");
  CHECK(run.count("replay u#0") == 1);
}

TEST_CASE("R8: a reentrant unit's ops make no nodes; its own is older than its body", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-reentrant");
  CHECK(nodes(run, Phase::backward) == Events{"sum", "CheckpointFunction", "tanh", "mm"});
  CHECK(run.events == Events{"replay u#0", "op mm", "op tanh", "end"});
}

TEST_CASE("R9: packs of an op that raises come before, `end` before `error`", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) +
                    "," + loss_of("y"),
                "torch-sac", R"("keep":["mm"])",
                R"({"actions":["F0.0",{"action":"B0.0","retain":true},"B0.0"]})");
  const Events tail(run.events.end() - 4, run.events.end());
  CHECK(tail == Events{"save f0.0", "save f0.1", "end", "error builtins.RuntimeError"});
}

TEST_CASE("R10: a write to what inputs_save lists raises in place of the replay", "[sim]") {
  const std::string write = R"(,{"update":"h"})";
  const std::string stage = op("sin", {"x"}, {"h"}) + "," +
                            checkpoint("u", op("tanh", {"h"}, {"y"})) + "," + loss_of("y") + write;
  CHECK(run_stage(stage, "torch", R"("compat":"torch")").events ==
        Events{"error builtins.RuntimeError"});
  CHECK(run_stage(stage, "torch", R"("compat":"torch","ambient_hooks":true)").code() == "none");
}

TEST_CASE("R12: a number is never packed: mul and div by one save nothing", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mul", {"x"}, {"h"}, R"("attrs":{"other":2})") + "," +
                                    op("div", {"h"}, {"y"}, R"("attrs":{"other":3})")) +
                "," + loss_of("y"));
  CHECK(packed(run).empty());
  CHECK(run.events.empty());
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("R13: a non-reentrant unit inside a reentrant one packs nothing in forward", "[sim]") {
  const std::string inner = checkpoint("inner", op("tanh", {"h"}, {"y"}));
  const ScenarioRun run =
      run_stage(checkpoint("outer", op("sin", {"x"}, {"h"}) + "," + inner, R"("reentrant":true)") +
                "," + loss_of("y"));
  std::int64_t n_before_backward = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() == Kind::frame_create && run.trace[i].phase() == Phase::forward)
      ++n_before_backward;
  }
  CHECK(n_before_backward == 0);
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("R14: an in-place op that needs what it overwrites copies and packs it", "[sim]") {
  const ScenarioRun run = run_stage(
      checkpoint("u", op("sin", {"x"}, {"h"}) + R"(,{"in_place":"mul","in":["h","w0"]},)" +
                          op("tanh", {"h"}, {"y"})) +
          "," + loss_of("y"),
      "torch", R"("early_stop":false)");
  const Events outer(run.events.begin(), run.events.begin() + 9);
  CHECK(outer == Events{"replay u#0", "save f0.0", "op sin", "save f0.1", "op aten.clone.default",
                        "save f0.2", "op mul", "op tanh", "save f0.3"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("R14: after an in-place write the history of the tensor goes through it", "[sim]") {
  const std::string stage = op("sin", {"x"}, {"h"}) + R"(,{"in_place":"scale","in":["h"]},)" +
                            op("tanh", {"h"}, {"y"}) + "," + loss_of("y");
  const ScenarioRun plain = run_stage(stage, "none");
  CHECK(nodes(plain, Phase::backward) == Events{"sum", "tanh", "scale", "sin"});
  const ScenarioRun out_of_place =
      run_stage(op("sin", {"x"}, {"h"}) + "," + op("scale", {"h"}, {"k"}) + "," +
                    op("tanh", {"k"}, {"y"}) + "," + loss_of("y"),
                "none");
  REQUIRE(plain.result.contributions.size() == 1);
  CHECK(plain.result.contributions[0].value == out_of_place.result.contributions[0].value);
}

TEST_CASE("R14: an in-place write through a view is in the history of the base", "[sim]") {
  const ScenarioRun run = run_stage(
      op("sin", {"x"}, {"h"}) + R"(,{"view":"slice","in":["h"],"out":["v"],"shape":[2,8]},)" +
          R"({"in_place":"scale","in":["v"]},)" + op("tanh", {"h"}, {"y"}) + "," + loss_of("y"),
      "none");
  CHECK(nodes(run, Phase::backward) == Events{"sum", "tanh", "scale", "slice", "sin"});
  const ScenarioRun kept = run_stage(
      checkpoint("u", op("sin", {"x"}, {"h"}) +
                          R"(,{"view":"slice","in":["h"],"out":["v"],"shape":[2,8]},)" +
                          R"({"in_place":"scale","in":["v"]},)" + op("tanh", {"h"}, {"y"})) +
      "," + loss_of("y"));
  CHECK(kept.result.gradients_match == true);
  CHECK(kept.broken().empty());
}
