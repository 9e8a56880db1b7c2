#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/remat_stage.hpp"

// protocols.md P7 and observed-torch.md §5: each test is named after its rule. A tensor has 128
// bytes, the loss 4.

using namespace remat;

namespace {

using Names = std::vector<std::string>;

const std::string retained = R"({"actions":["F0.0",{"action":"B0.0","retain":true},"B0.0"]})";

/// Forward and replays: how often an op ran.
std::pair<std::int64_t, std::int64_t> runs_of(const ScenarioRun& run, const std::string& name) {
  return {run.ops(name, Phase::forward), run.ops(name, Phase::replay)};
}
using Runs = std::pair<std::int64_t, std::int64_t>;

/// As the plain run, as it should be, strictly and as torch_remat is.
ScenarioRun require_sound_body(const std::string& body, const std::string& schedule = "{}") {
  const ScenarioRun plain = run_plain(body, schedule);
  require_sound(run_remat(body, R"("compat":"torch")", schedule), plain);
  ScenarioRun run = run_remat(body, "", schedule);
  require_sound(run, plain);
  return run;
}

struct Fate {
  const char* what;
  std::string body;
  Names fates;
};
void check_fates(const std::vector<Fate>& rows) {
  for (const Fate& row : rows) {
    CAPTURE(row.what);
    CHECK(fates(require_sound_body(make_a + row.body)) == row.fates);
  }
}

}  // namespace

TEST_CASE("P7: a replay starts at the output and runs the whole body", "[sim][remat]") {
  // Nothing behind sin saves anything: torch's replay ends before sin, this one at the trigger.
  const std::string body = recomputed("c", "", op("cos", {"x"}, {"a"})) + "," +
                           recomputed("d", "", op("sin", {"a"}, {"h"})) + "," +
                           op("add", {"h", "h"}, {"y"});
  const ScenarioRun run = require_sound_body(body);
  CHECK(run.events == Names{"replay r#0", "save f0.0", "op cos", "save f0.1", "op sin", "op add",
                            "save f0.2", "stop", "end", "unpack f0.2", "unpack f0.1",
                            "unpack f0.0"});
  CHECK(run.ops("aten.view.default", Phase::forward) == 1);  // the trigger's
}

TEST_CASE("P7: every output that requires grad has a trigger", "[sim][remat]") {
  const std::string body =
      op("cos", {"x"}, {"a"}) + "," + op("sin", {"x"}, {"b"}) + "," + op("detach", {"a"}, {"c"});
  const std::string after =
      op("mul", {"a", "b"}, {"ab"}) + "," + op("mul", {"ab", "c"}, {"y"}) + "," + loss_of("y");
  const ScenarioRun run = run_stage(checkpoint("r", body) + "," + after, "remat");
  require_sound(run, run_stage(checkpoint("r", body) + "," + after, "none"));
  CHECK(run.count("save f0.3") == 1);  // two of the body, two triggers
  CHECK(run.count("save f0.4") == 0);
  CHECK(run.count("replay r#0") == 1);
}

TEST_CASE("P7: the body of a saved region runs once, that of a recomputed one again",
          "[sim][remat]") {
  const ScenarioRun run =
      require_sound_body(make_a + recomputed("c", in_a, op("sin", {"a"}, {"b"})) + "," +
                         saved("s", R"("in":["b"])", op("mul", {"b", "b"}, {"h"})) + "," +
                         recomputed("d", in_h, op("gelu", {"h"}, {"y"})));
  CHECK(runs_of(run, "mul") == Runs{1, 0});
  CHECK(runs_of(run, "sin") == Runs{1, 1});
  CHECK(runs_of(run, "gelu") == Runs{1, 1});
  CHECK(run.result.rederived_bytes == 128);
}

TEST_CASE("P7: what a saved region saves of its arguments waits for the replay", "[sim][remat]") {
  check_fates({
      {"the argument itself", saved("s", in_a, op("sin", {"a"}, {"y"})), {"arg0"}},
      {"as both factors", saved("s", in_a, op("mul", {"a", "a"}, {"y"})), {"arg0", "arg0"}},
      {"in a dict, by keyword",
       saved("s", R"("kwargs":{"m":{"k":["a"]}})", op("sin", {"a"}, {"y"})),
       {"kwarg.m.k[0]"}},
      {"another shape of it",
       saved("s", in_a, flat("a", "v") + "," + op("sin", {"v"}, {"y"})),
       {"view of arg0"}},
      {"two rows of it",
       saved("s", in_a,
             R"({"view":"slice","in":["a"],"out":["v"],"shape":[2,8],"stride":[8,1],"offset":8},)" +
                 op("sin", {"v"}, {"y"})),
       {"view of arg0"}},
      {"the argument itself rather than one that contains it",
       flat("a", "v") + "," + saved("s", R"("in":["a","v"])", op("sin", {"v"}, {"y"})),
       {"arg1"}},
      {"saved before the body writes it elsewhere",
       saved("s", in_a,
             op("sin", {"a"}, {"g"}) + "," + scaled_in_place("g") + "," +
                 op("add", {"g", "g"}, {"y"})),
       {"arg0"}},
  });
}

TEST_CASE("P7: what a replay does not make again is kept", "[sim][remat]") {
  check_fates({
      {"made in the body",
       saved("s", in_a, op("scale", {"a"}, {"g"}) + "," + op("sin", {"g"}, {"y"})),
       {"kept"}},
      {"its own output", saved("s", in_a, op("tanh", {"a"}, {"y"})), {"kept"}},
      {"written in the body before it is saved",
       saved("s", in_a, scaled_in_place("a") + "," + op("sin", {"a"}, {"y"})),
       {"kept"}},
      {"of another dtype",
       saved("s", in_a,
             R"({"view":"view_dtype","in":["a"],"out":["v"],"dtype":"i32"},)" +
                 op("mul", {"a", "v"}, {"y"})),
       {"kept"}},
      {"returned by another saved region, a stub",
       square + "," + saved("t", in_h, op("sin", {"h"}, {"y"})),
       {"arg0", "arg0", "kept"}},
      {"a view of a stub",
       square + "," + flat("h", "v") + "," + saved("t", R"("in":["v"])", op("sin", {"v"}, {"y"})),
       {"arg0", "arg0", "kept"}},
      {"no argument at all", saved("s", R"("in":[])", op("sin", {"a"}, {"y"})), {"kept"}},
  });
}

TEST_CASE("P7: strict keeps a parameter and a view that repeats, torch_remat brings both",
          "[sim][remat]") {
  const std::string gemm = saved("s", R"("in":["a","w0"])", op("mm", {"a", "w0"}, {"y"}));
  const std::string expanded =
      saved("s", in_a,
            R"({"view":"expand","in":["a"],"out":["v"],"shape":[3,4,8],"stride":[0,8,1]},)" +
                op("sin", {"v"}, {"y"}));
  CHECK(fates(run_remat(make_a + gemm)) == Names{"kept", "arg0"});
  CHECK(fates(run_remat(make_a + expanded)) == Names{"kept"});
  CHECK(fates(run_remat(make_a + gemm, R"("compat":"torch")")) == Names{"arg1", "arg0"});
  CHECK(fates(run_remat(make_a + expanded, R"("compat":"torch")")) == Names{"view of arg0"});
  require_sound_body(make_a + gemm);
  require_sound_body(make_a + expanded);
  // A parameter costs nothing either way.
  CHECK(run_remat(make_a + gemm).result.resident_bytes == 4);
}

TEST_CASE("P7: a saved region's output is kept once a recomputed region is given it",
          "[sim][remat]") {
  const ScenarioRun run =
      require_sound_body(make_a + square + "," + recomputed("c", in_h, op("sin", {"h"}, {"y"})));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
  CHECK(outputs_told(run, Kind::remat_serve) == Names{"s.0"});
  CHECK(run.kinds(Kind::remat_placeholder) == 0);
  CHECK(resident(run, OwnerClass::persisted) == 128);
}

TEST_CASE("P7: a view tells by its storage whose output it is", "[sim][remat]") {
  const std::string makes_v = make_a + square + "," + flat("h", "v") + ",";
  const std::string given = makes_v + recomputed("c", R"("in":["v"])", op("sin", {"v"}, {"y"}));
  const std::string asked = makes_v + needs("v") + "," + op("sin", {"v"}, {"y"});
  for (const std::string& body : {given, asked}) {
    CAPTURE(body);
    const ScenarioRun run = require_sound_body(body);
    CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
    CHECK(run.ops("view", Phase::replay) == 1);
  }
}

TEST_CASE("P7: needs_tensor keeps a saved region's output, and is silent of any other tensor",
          "[sim][remat]") {
  const ScenarioRun run = require_sound_body(make_a + needs("a") + "," + square + "," + needs("h") +
                                             "," + needs("h") + "," + op("sin", {"h"}, {"y"}));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
  CHECK(run.result.resident_bytes == 128 + 4);
}

TEST_CASE("P7: an output that backward keeps anyway is kept for a replay at the region's end",
          "[sim][remat]") {
  const ScenarioRun run =
      require_sound_body(make_a + saved("s", in_a + R"(,"out":"h")", op("tanh", {"a"}, {"h"})) +
                         "," + op("sin", {"h"}, {"y"}));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
  CHECK(run.result.resident_bytes == 128 + 4);  // one storage, two owners
}

TEST_CASE("P7: one output twice, and two on one storage, are kept together", "[sim][remat]") {
  const ScenarioRun run =
      require_sound_body(make_a +
                         saved("s", in_a + R"(,"out":["h","v","h"])",
                               op("mul", {"a", "a"}, {"h"}) + "," + flat("h", "v")) +
                         "," + recomputed("c", R"("in":["v"])", op("sin", {"v"}, {"y"})));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0", "s.1", "s.2"});
  CHECK(resident(run, OwnerClass::persisted) == 128);
}

TEST_CASE("P7: from one saved region to the next nothing is kept for the replay", "[sim][remat]") {
  const ScenarioRun run = require_sound_body(
      make_a + square + "," + saved("t", in_h + R"(,"out":"k")", op("scale", {"h"}, {"k"})) + "," +
      recomputed("c", R"("in":["k"])", op("sin", {"k"}, {"y"})));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"t.0"});
  CHECK(outputs_told(run, Kind::remat_placeholder) == Names{"s.0"});
  CHECK(run.result.resident_bytes == 128 + 4);
}

TEST_CASE("P7: an output that nobody reads costs nothing", "[sim][remat]") {
  const std::string both = op("mul", {"a", "a"}, {"h"}) + "," + op("sin", {"a"}, {"dead"});
  const ScenarioRun run =
      require_sound_body(make_a + saved("s", in_a + R"(,"out":["h","dead"])", both) + "," +
                         recomputed("c", in_h, op("gelu", {"h"}, {"y"})));
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
  CHECK(outputs_told(run, Kind::remat_placeholder) == Names{"s.1"});
  CHECK(run.result.resident_bytes == 128 + 4);
}

TEST_CASE("P7: views of a placeholder are placeholders, and saved regions may have them",
          "[sim][remat]") {
  const ScenarioRun run = require_sound_body(make_a + square + "," + flat("h", "v") + "," +
                                             saved("t", R"("in":["v"])", op("sin", {"v"}, {"y"})));
  CHECK(run.ops("view", Phase::replay) == 1);
  CHECK(outputs_told(run, Kind::remat_placeholder) == Names{"s.0", "t.0"});
}

TEST_CASE("P7: a placeholder has no bytes, and the shape of what it stands for", "[sim][remat]") {
  const ScenarioRun run = run_remat(make_a + saved("s", in_a, op("sin", {"a"}, {"y"})));
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::remat_placeholder) continue;
    const TensorView tensor = *event.tensor(Field::tensor);
    CHECK(run.trace.layout(tensor.layout).shape == std::vector<std::int64_t>{4, 8});
    CHECK(event.integer(Field::declared_bytes) == 128);
  }
  CHECK(run.kinds(Kind::remat_placeholder) == 1);
  CHECK(run.result.replay_peak_bytes == 128);  // a alone
}

TEST_CASE("P7: under retain_graph each backward replays, is served and brought everything anew",
          "[sim][remat]") {
  const std::string body = make_a + square + "," + recomputed("c", in_h, op("sin", {"h"}, {"y"}));
  const ScenarioRun run = require_sound_body(body, retained);
  CHECK(run.count("replay r#0") == 2);
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"s.0"});
  CHECK(outputs_told(run, Kind::remat_serve) == Names{"s.0", "s.0"});
  CHECK(run.kinds(Kind::remat_rederive) == 4);  // both factors, twice
  CHECK(runs_of(run, "mul") == Runs{1, 0});
}

TEST_CASE("P7: what was served goes with the replay that no other follows", "[sim][remat]") {
  // While c's backward runs only its own slot holds h.
  const std::string body = make_a + square + "," + recomputed("c", in_h, op("sin", {"h"}, {"y"}));
  std::vector<bool> popped;
  const ScenarioRun run = run_remat(body, "", retained);
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() == Kind::remat_serve)
      popped.push_back(run.trace[i].is_true(Field::popped));
  }
  CHECK(popped == std::vector<bool>{false, true});
}

TEST_CASE("P7: dx and dw replay recomputed regions each, and are right", "[sim][remat]") {
  const std::string body = recomputed("c", R"("in":["x"])", linear(0, "x", "h")) + "," +
                           recomputed("d", in_h, op("sin", {"h"}, {"y"}));
  const ScenarioRun run = require_sound_body(body, R"({"backward":"split"})");
  CHECK(run.count("replay r#0") == 2);  // dx, and the one group of weight and bias
}

TEST_CASE("P7: dw begins behind the trigger, so what dx read of a saved region is gone",
          "[sim][remat]") {
  const std::string body = make_a + saved("c", R"("in":["a"],"out":"h")", linear(0, "a", "h")) +
                           "," + recomputed("d", in_h, op("sin", {"h"}, {"y"}));
  const ScenarioRun run = run_remat(body, "", R"({"backward":"split"})");
  REQUIRE(run.code() == "E-TWICE");
  CHECK(run.result.error->message ==
        "slot f0.c:saved_input.0 of region c in r#0 (micro-batch 0, backward_weight), input "
        "arg0: it was handed out already, and no replay has filled it since");
  CHECK(run.result.error->type == "builtins.RuntimeError");
  CHECK(run.broken().empty());  // refused: nothing wrong was read
  CHECK(run_remat(body, R"("compat":"torch")", R"({"backward":"split"})").code() == "E-TWICE");
  require_sound_body(body);  // it is the split that does it
}

TEST_CASE("P7: outside a checkpoint a region is code like any other", "[sim][remat]") {
  const std::string stage = make_a + square + "," + needs("h") + "," +
                            recomputed("s", in_h, op("sin", {"h"}, {"y"})) + "," + loss_of("y");
  const ScenarioRun run = run_stage(stage, "remat");
  require_sound(run, run_stage(stage, "none"));
  CHECK(run.kinds(Kind::region_begin) == 0);
  CHECK(run.kinds(Kind::remat_persist) == 0);
  CHECK(run.result.resident_bytes == run_stage(stage, "none").result.resident_bytes);
}

TEST_CASE("P7: a checkpoint without gradients keeps nothing and never replays", "[sim][remat]") {
  const std::string unseen =
      op("cos", {"x"}, {"a"}) + "," + square + "," + recomputed("c", in_h, op("sin", {"h"}, {"q"}));
  const std::string stage = R"({"no_grad":[)" + checkpoint("r", unseen) + "]}," +
                            op("mul", {"x", "q"}, {"y"}) + "," + loss_of("y");
  const ScenarioRun run = run_stage(stage, "remat");
  require_sound(run, run_stage(stage, "none"));
  CHECK(run.count("replay r#0") == 0);
  CHECK(run.result.resident_bytes == run_stage(stage, "none").result.resident_bytes);
}

TEST_CASE("P7: a saved region within a saved one is part of its body", "[sim][remat]") {
  // By the inner one's own account s would be its argument; the outer one's replay has no s.
  const std::string inner = op("sin", {"a"}, {"s"}) + "," +
                            saved("i", R"("in":["s"],"out":"y")", op("mul", {"s", "s"}, {"y"}));
  const ScenarioRun run = require_sound_body(make_a + saved("o", in_a, inner));
  CHECK(fates(run) == Names{"arg0", "kept", "kept"});
  CHECK(run.kinds(Kind::region_begin) == 2);  // o's, in forward and in the replay
}

TEST_CASE("P7: a saved region within a recomputed one is left out of its replay", "[sim][remat]") {
  const ScenarioRun run = require_sound_body(
      make_a + recomputed("o", in_a, square + "," + needs("h") + "," + op("sin", {"h"}, {"y"})));
  CHECK(runs_of(run, "mul") == Runs{1, 0});
  CHECK(runs_of(run, "sin") == Runs{1, 1});
}

TEST_CASE("P7: two calls of a checkpointed region have records of their own", "[sim][remat]") {
  const std::string body =
      checkpoint("r", saved("s", in_a + R"(,"out":"h")", op("mul", {"a", "a"}, {"h"})) + "," +
                          recomputed("c", in_h, op("sin", {"h"}, {"b"})));
  const std::string bodies = R"({"l":{"in":["a"],"out":["b"],"body":[)" + body + "]}}";
  const std::string stage =
      R"({"call":"l","in":["x"],"out":["m"]},{"call":"l","in":["m"],"out":["y"]},)" + loss_of("y");
  const std::string schedule = R"({"microbatches":2})";
  const ScenarioRun run = run_stage(stage, "remat", "", schedule, bodies);
  require_sound(run, run_stage(stage, "none", "", schedule, bodies));
  CHECK(outputs_told(run, Kind::remat_serve).size() == 4);
}

TEST_CASE("P7: under remat excluded regions are saved ones", "[sim][remat]") {
  const std::string excluded =
      R"({"exclude":"w","in":["a"],"out":"h","body":[)" + op("mul", {"a", "a"}, {"h"}) + "]},";
  const std::string consumer = recomputed("c", in_h, op("sin", {"h"}, {"y"}));
  const ScenarioRun run = require_sound_body(make_a + excluded + consumer);
  CHECK(fates(run) == Names{"arg0", "arg0"});
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"w.0"});
  // Their outputs are kept for whoever asks, not for all.
  CHECK(run_remat(make_a + excluded + op("sin", {"h"}, {"y"})).code() == "E-PLACEHOLDER");
}

TEST_CASE("P7: under exclusion wrappers saved regions are excluded ones, recomputed ones plain",
          "[sim][remat]") {
  const std::string stage =
      checkpoint("r", make_a + square + "," + recomputed("c", in_h, op("gelu", {"h"}, {"b"})) +
                          "," + op("sin", {"b"}, {"y"})) +
      "," + loss_of("y");
  const ScenarioRun plain = run_stage(stage, "none");
  for (const std::string protocol : {"exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(stage, protocol);
    require_sound(run, plain);
    CHECK(runs_of(run, "mul") == Runs{1, 0});
    CHECK(runs_of(run, "gelu") == Runs{1, 1});
    CHECK(run.kinds(Kind::region_begin) == 0);
    CHECK(resident(run, OwnerClass::excl_output) == 128);
  }
  // Protocols that know no regions at all run them as they stand.
  for (const std::string protocol : {"torch", "torch-reentrant", "torch-sac"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(stage, protocol);
    require_sound(run, plain);
    CHECK(runs_of(run, "mul") == Runs{1, 1});
  }
}
