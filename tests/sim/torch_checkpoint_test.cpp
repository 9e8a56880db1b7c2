#include <catch2/catch.hpp>

#include "tests/sim/scenario_run.hpp"

// observed-torch.md §1, non-reentrant: each test is named after the rule that it holds.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

const std::string layer =
    checkpoint("layer", linear(0, "x", "h") + "," + op("gelu", {"h"}, {"u"}) + "," +
                            linear(1, "u", "v") + "," + op("tanh", {"v"}, {"y"}));

}  // namespace

TEST_CASE("state: slots are numbered by the order of the packs, and hold no tensor", "[sim]") {
  const ScenarioRun run = run_stage(layer + "," + loss_of("y"));
  REQUIRE_FALSE(run.result.error);
  std::vector<std::string> packed;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::pack || event.text(Field::role) != "checkpointed") continue;
    CHECK(event.text(Field::held) == "placeholder");
    CHECK(event.integer(Field::idx) == std::ssize(packed));
    packed.emplace_back(event.text(Field::slot));
  }
  CHECK(packed == Events{"f0.0", "f0.1", "f0.2", "f0.3", "f0.4", "f0.5"});
  // After forward only the output and the loss are alive: 4·8 and 1 elements of four bytes.
  CHECK(run.result.resident_bytes == 4);
}

TEST_CASE("when a replay starts: at the first unpack, inside the node made last that has a slot",
          "[sim]") {
  const ScenarioRun run = run_stage(layer + "," + loss_of("y"));
  CHECK(run.events == Events{"replay layer#0", "save f0.0", "save f0.1", "op addmm", "save f0.2",
                             "op gelu", "save f0.3", "save f0.4", "op addmm", "op tanh",
                             "save f0.5", "stop", "end", "unpack f0.5", "unpack f0.3",
                             "unpack f0.4", "unpack f0.2", "unpack f0.0", "unpack f0.1"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("when a replay starts: a tail that saves nothing runs its backward before it", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", linear(0, "x", "h") + "," + op("add", {"h", "x"}, {"y"})) + "," +
                loss_of("y"));
  std::vector<std::string> order;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::unit_begin && event.text(Field::exec) == "replay")
      order.emplace_back("replay");
    if (event.kind() == Kind::op && event.phase() == Phase::backward &&
        event.text(Field::name) == "add.backward")
      order.emplace_back("add");
  }
  REQUIRE(order.size() >= 2);
  CHECK(order.front() == "add");
  CHECK(order.back() == "replay");
}

TEST_CASE("sequence: inputs are fetched, the replay runs, then the slot is handed out", "[sim]") {
  const ScenarioRun run = run_stage(layer + "," + loss_of("y"));
  std::vector<Kind> order;
  for (std::size_t i = 0; i < run.trace.size() && order.size() < 6; ++i) {
    const EventView event = run.trace[i];
    const bool is_replay = event.text(Field::exec) == "replay";
    const bool counts = event.kind() == Kind::inputs_unpack_begin ||
                        event.kind() == Kind::inputs_unpack ||
                        event.kind() == Kind::determinism_check ||
                        (event.kind() == Kind::unit_begin && is_replay) ||
                        (event.kind() == Kind::unit_end && is_replay) ||
                        (event.kind() == Kind::unpack && event.has(Field::frame));
    if (counts) order.push_back(event.kind());
  }
  CHECK(order == std::vector<Kind>{Kind::inputs_unpack_begin, Kind::inputs_unpack, Kind::unit_begin,
                                   Kind::unit_end, Kind::determinism_check, Kind::unpack});
}

TEST_CASE("a replay that raises leaves the frame as it was: nothing is handed out", "[sim]") {
  const ScenarioRun run = run_stage(
      checkpoint("u", linear(0, "x", "h") + R"(,{"raise":"builtins.ValueError","in":"replay"},)" +
                          op("tanh", {"h"}, {"y"})) +
      "," + loss_of("y"));
  CHECK(run.events == Events{"replay u#0", "save f0.0", "save f0.1", "op addmm", "end",
                             "error builtins.ValueError"});
  CHECK(run.code() == "E-USER");
}

TEST_CASE("early stop: an op whose last save is an input is not run, one that saves its output is",
          "[sim]") {
  const ScenarioRun by_input =
      run_stage(checkpoint("u", op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"y"})) + "," +
                loss_of("y"));
  CHECK(by_input.ops("sin", Phase::forward) == 2);
  CHECK(by_input.ops("sin", Phase::replay) == 1);
  const ScenarioRun by_output =
      run_stage(checkpoint("u", op("sin", {"x"}, {"h"}) + "," + op("tanh", {"h"}, {"y"})) + "," +
                loss_of("y"));
  CHECK(by_output.ops("tanh", Phase::replay) == 1);
  CHECK(by_output.count("stop") == 1);
}

TEST_CASE("early stop counts packs, not holders alive: unused outputs do not shorten a replay",
          "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("sin", {"x"}, {"y"}) + "," + op("sin", {"x"}, {"a"}) + "," +
                                    op("sin", {"a"}, {"unused"})) +
                "," + loss_of("y"));
  // The two slots of the unused branch are dead by then, and refilled all the same.
  CHECK(run.count("save f0.2") == 1);
  CHECK(run.count("unpack f0.2") == 0);
  CHECK(run.count("op sin") == 2);
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("early stop: a nested unit's input is a save of its parent, which stops there", "[sim]") {
  const std::string inner = checkpoint("inner", op("sin", {"h"}, {"y"}));
  const ScenarioRun run =
      run_stage(checkpoint("outer", op("cos", {"x"}, {"h"}) + "," + inner) + "," + loss_of("y"));
  // The outer replay ends as it enters the inner unit: its body runs in the inner replay alone,
  // where its only save, an input, stops it before the op.
  CHECK(run.events == Events{"replay outer#0", "save f0.0", "op cos", "save f0.1", "stop", "end",
                             "unpack f0.1", "replay inner#0", "save f1.0", "stop", "end",
                             "unpack f1.0", "unpack f0.0"});
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("early stop: a frozen weight shortens the replay only where it takes the last save away",
          "[sim]") {
  const auto run_with = [](bool frozen) {
    const std::string w =
        frozen ? R"({"shape":[8,8],"requires_grad":false})" : R"({"shape":[8,8]})";
    return run_text(R"({"format":"rematsim-scenario","version":1,"program":{"loss":"loss",)"
                    R"("inputs":{"x":{"shape":[4,8]}},"params":{"v":{"shape":[8,8]},"w":)" +
                    w + R"(},"stages":[[)" +
                    checkpoint("u", op("mm", {"x", "v"}, {"h"}) + "," + op("sin", {"h"}, {"s"}) +
                                        "," + op("mm", {"s", "w"}, {"y"})) +
                    "," + loss_of("y") + R"(]]},"protocol":{"name":"torch"}})");
  };
  // Frozen: the last matmul saves its weight for dx, so its input is made all the same.
  CHECK(run_with(true).ops("sin", Phase::replay) == 1);
  CHECK(run_with(false).ops("sin", Phase::replay) == 1);
  CHECK(run_with(true).kinds(Kind::repack) == 3);
  CHECK(run_with(false).kinds(Kind::repack) == 4);
}

TEST_CASE("in the body: effects after the stop do not run again, those before it do", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", R"({"side_effect":"before"},)" + op("tanh", {"x"}, {"y"}) +
                                    R"(,{"side_effect":"after"})") +
                "," + loss_of("y"));
  std::int64_t before = 0;
  std::int64_t after = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() != Kind::side_effect) continue;
    (run.trace[i].text(Field::name) == "before" ? before : after) += 1;
  }
  CHECK(before == 2);
  CHECK(after == 1);
  CHECK(run.broken() == Events{"op_counts"});  // C2: the effect that ran again is told
}

TEST_CASE("early_stop=False: the whole function runs again", "[sim]") {
  const std::string body = op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"y"});
  const ScenarioRun run =
      run_stage(checkpoint("u", body) + "," + loss_of("y"), "torch", R"("early_stop":false)");
  CHECK(run.ops("sin", Phase::replay) == 2);
  CHECK(run.count("stop") == 0);
  const ScenarioRun of_region =
      run_stage(checkpoint("u", body, R"("early_stop":false)") + "," + loss_of("y"));
  CHECK(of_region.ops("sin", Phase::replay) == 2);
}

TEST_CASE("kept alive after forward: the arguments, and what the closure holds", "[sim]") {
  const std::string body = op("mul", {"h", "c.k"}, {"y"});
  const ScenarioRun run =
      run_stage(op("sin", {"x"}, {"h"}) + "," + op("cos", {"x"}, {"k"}) +
                R"(,{"container":"c","in":["k"]},)" + checkpoint("u", body) + "," + loss_of("y"));
  // h as an argument, k inside a container, and the loss.
  CHECK(run.result.resident_bytes == 128 + 128 + 4);
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() != Kind::inputs_save) continue;
    CHECK(run.trace[i].list_size(Field::tensors) == 1);
    CHECK(run.trace[i].integer(Field::n_nontensor) == 1);
  }
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("after the replay: a tensor is dropped when it is handed out, also under retain_graph",
          "[sim]") {
  const ScenarioRun run =
      run_stage(layer + "," + loss_of("y"), "torch", "",
                R"({"actions":["F0.0",{"action":"B0.0","retain":true},"B0.0"]})");
  CHECK(run.count("replay layer#0") == 2);  // nothing stays between the calls
  CHECK(run.count("unpack f0.2") == 2);
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("after the replay: the frame goes with its last holder, and its inputs before that",
          "[sim]") {
  const ScenarioRun run = run_stage(op("sin", {"x"}, {"h"}) + "," +
                                    checkpoint("u", op("tanh", {"h"}, {"y"})) + "," + loss_of("y"));
  std::vector<std::string> order;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::frame_free) order.emplace_back("frame");
    if (event.kind() == Kind::holder_free) order.emplace_back(event.text(Field::slot));
  }
  CHECK(order == Events{"frame", "p1", "f0.0", "p0"});
}

TEST_CASE("order: nodes unpack newest first, and each its slots in the order packed", "[sim]") {
  const ScenarioRun run =
      run_stage(checkpoint("u", op("mul", {"x", "x"}, {"h"}) + "," + linear(0, "h", "y")) + "," +
                loss_of("y"));
  Events unpacked;
  for (const std::string& event : run.events)
    if (event.starts_with("unpack")) unpacked.push_back(event);
  CHECK(unpacked == Events{"unpack f0.2", "unpack f0.3", "unpack f0.0", "unpack f0.1"});
}

TEST_CASE("determinism check: first the count, then shape and dtype of live slots", "[sim]") {
  const auto differing = [](const std::string& replay_body, const std::string& tail) {
    return run_stage(
        checkpoint("u", R"({"branch":"forward","body":[)" + op("sin", {"x"}, {"h"}) + "," +
                            op("sin", {"h"}, {"k"}) + R"(]},{"branch":"replay","body":[)" +
                            replay_body + "]}" + tail) +
            "," + loss_of("y"),
        "torch", R"("early_stop":false,"compat":"torch")");
  };
  const std::string tail = "," + op("sin", {"k"}, {"y"});
  CHECK(differing(op("sin", {"x"}, {"k"}), tail).code() == "E-COUNT");
  CHECK(differing(
            op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"j"}) + "," + op("sin", {"j"}, {"k"}),
            tail)
            .code() == "E-MORE");
  CHECK(differing(op("sin", {"x"}, {"h"}) + "," + op("sin", {"h"}, {"k"}, R"("shape":[4,4])"), tail)
            .code() == "E-META");
}

TEST_CASE("nesting: innermost first, the parent's replay inside, each once", "[sim]") {
  const auto nested = [](const std::string& options) {
    const std::string a = checkpoint("A", op("sin", {"h"}, {"a"}) + "," + op("tanh", {"a"}, {"b"}));
    const std::string b = checkpoint("B", op("sin", {"b"}, {"c"}) + "," + op("tanh", {"c"}, {"y"}));
    return run_stage(
        checkpoint("outer", op("cos", {"x"}, {"h"}) + "," + a + "," + b) + "," + loss_of("y"),
        "torch", options);
  };
  const ScenarioRun early = nested("");
  // A's body: forward, in outer's replay, its own; B's: not in outer's replay, which stops there.
  CHECK(early.ops("sin", Phase::replay) == 1 + 1 + 1);
  CHECK(early.count("replay outer#0") == 1);
  CHECK(early.count("replay A#0") == 1);
  CHECK(early.count("replay B#0") == 1);
  const ScenarioRun whole = nested(R"("early_stop":false)");
  CHECK(whole.ops("sin", Phase::replay) == 2 + 1 + 1);
  CHECK(early.result.gradients_match == true);
  CHECK(whole.result.gradients_match == true);
  CHECK(early.broken().empty());
}

TEST_CASE("nesting, three deep: A, A/B, A/B/C, one replay each", "[sim]") {
  const std::string c = checkpoint("C", op("tanh", {"b"}, {"y"}));
  const std::string b = checkpoint("B", op("sin", {"a"}, {"b"}) + "," + c);
  const ScenarioRun run =
      run_stage(checkpoint("A", op("cos", {"x"}, {"a"}) + "," + b) + "," + loss_of("y"));
  Events replays;
  for (const std::string& event : run.events)
    if (event.starts_with("replay")) replays.push_back(event);
  CHECK(replays == Events{"replay A#0", "replay B#0", "replay C#0"});
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("several graphs alive: each backward replays its own frames, last unit first", "[sim]") {
  const std::string body = R"({"l":{"in":["a"],"out":["b"],"body":[)" +
                           checkpoint("l", op("tanh", {"a"}, {"b"})) + "]}}";
  const ScenarioRun run = run_stage(
      R"({"call":"l","in":["x"],"out":["h"]},{"call":"l","in":["h"],"out":["y"]},)" + loss_of("y"),
      "torch", "", R"({"microbatches":2,"actions":["F0.0","F0.1","B0.0","B0.1"]})", body);
  Events replays;
  for (const std::string& event : run.events)
    if (event.starts_with("replay")) replays.push_back(event);
  CHECK(replays == Events{"replay l#1", "replay l#0", "replay l#3", "replay l#2"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("a write under no_grad leaves a tensor the history that it had", "[sim]") {
  const std::string body = op("neg", {"x"}, {"t"}) + "," +
                           R"({"no_grad":[{"in_place":"scale","in":["t"]}]},)" +
                           op("sin", {"t"}, {"y"});
  for (const std::string protocol : {"none", "torch"}) {
    CAPTURE(protocol);
    const ScenarioRun run =
        run_stage(checkpoint("r", body) + "," + op("sum", {"y"}, {"loss"}), protocol);
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
    CHECK(run.ops("neg.backward", Phase::backward) == 1);
    CHECK(run.result.contributions.size() == 1);  // to x
  }
}

TEST_CASE("no checkpoint at all under no_grad", "[sim]") {
  const ScenarioRun run = run_stage(R"({"no_grad":[)" + checkpoint("u", op("sin", {"x"}, {"h"})) +
                                    "]}," + op("mul", {"x", "h"}, {"y"}) + "," + loss_of("y"));
  CHECK(run.kinds(Kind::frame_create) == 0);
  CHECK(run.events.empty());
  CHECK(run.result.gradients_match == true);
}

TEST_CASE("shared unit twice: two frames, the later call replays first", "[sim]") {
  const std::string body = R"({"l":{"in":["a"],"out":["b"],"body":[)" +
                           checkpoint("l", op("tanh", {"a"}, {"b"})) + "]}}";
  const ScenarioRun run = run_stage(
      R"({"call":"l","in":["x"],"out":["h"]},{"call":"l","in":["h"],"out":["y"]},)" + loss_of("y"),
      "torch", "", "{}", body);
  CHECK(run.events == Events{"replay l#1", "op tanh", "save f1.0", "stop", "end", "unpack f1.0",
                             "replay l#0", "op tanh", "save f0.0", "stop", "end", "unpack f0.0"});
}

TEST_CASE("autograd.grad, partial: each call replays the units that it touches", "[sim]") {
  const std::string stage =
      checkpoint("l0", op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"k"})) + "," +
      checkpoint("l1", op("mm", {"k", "w1"}, {"m"}) + "," + op("tanh", {"m"}, {"y"})) + "," +
      loss_of("y");
  const ScenarioRun run =
      run_stage(stage, "torch", "",
                R"({"actions":["F0.0",{"action":"B0.0","retain":true,"wrt":["w1"]},"B0.0"]})");
  Events replays;
  for (const std::string& event : run.events)
    if (event.starts_with("replay")) replays.push_back(event);
  CHECK(replays == Events{"replay l1#0", "replay l1#0", "replay l0#0"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.result.contributions.size() == 1 + 3);
}

TEST_CASE("create_graph: both passes replay every unit", "[sim]") {
  const ScenarioRun run =
      run_stage(layer + "," + loss_of("y"), "torch", "",
                R"({"actions":["F0.0",{"action":"B0.0","retain":true},{"action":"B0.0"}]})");
  CHECK(run.count("replay layer#0") == 2);
  CHECK(run.count("unpack f0.5") == 2);
}
