#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/wrapped_recording.hpp"

// observed-hyperparallel.md §6: the rules by which backward follows from forward where regions are
// excluded, R16 to R20, R25 and R26. Those of sessions stand in session_prediction_rules_test.cpp.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

/// sin, then a call whose body saves its argument in x0 and keeps a parameter in x1, then cos.
WrappedRecording one_call(const std::string& frame = R"(,"early_stop":true)") {
  WrappedRecording run;
  run.region(0, {1}, frame).save(0, 1).op("sin.default", {1}, 4);
  run.enter("w", {4}).kept(1, 2).slot(0, 4, 0).op("mm.default", {4, 2}, 5);
  run.boundary(0, 0, 5, 6).leave("w", {6});
  run.save(0, 6).op("cos.default", {6}, 7).end_region();
  run.op("sum.default", {7}, 8, "[]").end_phase();
  return run;
}

/// A call that keeps no output, of what `sin` made; its boundary hands out tensor 6.
WrappedRecording unkept_call() {
  WrappedRecording run;
  run.region(0, {1}).save(0, 1).op("sin.default", {1}, 4);
  run.enter("w", {4}, false).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.boundary(0, 0, 5, 6).leave("w", {6});
  return run;
}

bool is_unsupported(const WrappedRecording& run) {
  return run.predicted().front().starts_with("unsupported: ");
}

}  // namespace

TEST_CASE("R16 to R18: a call is skipped, its slots are filled, its boundaries save", "[sim]") {
  CHECK(one_call().phase("backward").end_phase().predicted() ==
        Events{"replay u0#0", "save f0.0", "op aten.sin.default", "skip w#0", "fill x0",
               "save f0.1", "save f0.2", "stop", "end", "unpack f0.2", "unpack f0.1", "unpack x1",
               "unpack x0", "unpack f0.0"});
}

TEST_CASE("R16: what a body keeps is read without a replay, and its saves are not the frame's",
          "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).enter("w", {1}).kept(0, 1).op("sin.default", {1}, 4).leave("w", {4});
  run.end_region().op("sum.default", {4}, 5, "[]").end_phase();
  CHECK(run.phase("backward").end_phase().predicted() == Events{"unpack x0"});
}

TEST_CASE("R16: a slot that no replay fills is an error without an unpack", "[sim]") {
  // The inner call lies in a body that a replay skips.
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4);
  run.enter("outer", {4}).enter("inner", {4}).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.leave("inner", {5}).slot(1, 4, 0).kept(2, 5).op("mul.Tensor", {5, 4}, 6);
  run.boundary(0, 0, 6, 7).leave("outer", {7}).end_region();
  run.op("sum.default", {7}, 8, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip outer#0", "fill x1",
                                  "save f0.0", "stop", "end", "unpack f0.0", "unpack x1",
                                  "unpack x2", "error builtins.RuntimeError"});
}

TEST_CASE(
    "R17: every leaf has a boundary; what comes out of one requires grad, unless it is of "
    "integers",
    "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4);
  run.enter("w", {4}).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.op("gt.Scalar", {4}, 6, "[2,2]", "i64").op("gt.Scalar", {4}, 7);
  run.boundary(0, 0, 5, 8).boundary(0, 1, 6, 9).boundary(0, 2, 7, 10).leave("w", {8, 9, 10});
  run.save(0, 10).save(0, 8).op("mul.Tensor", {8, 10}, 11).end_region();
  run.op("sum.default", {11}, 12, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip w#0", "fill x0",
                                  "save f0.0", "save f0.1", "save f0.2", "save f0.3", "save f0.4",
                                  "stop", "end", "unpack f0.3", "unpack f0.4", "unpack f0.2",
                                  "unpack f0.0", "unpack x0"});
}

TEST_CASE("R17: a call without slots has no boundary, and runs backward before any replay",
          "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).save(0, 1).op("sin.default", {1}, 4);
  run.enter("w", {4}).kept(0, 4).op("cos.default", {4}, 5).leave("w", {5}).end_region();
  run.op("sum.default", {5}, 6, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() ==
        Events{"unpack x0", "replay u0#0", "save f0.0", "stop", "end", "unpack f0.0"});
}

TEST_CASE("R18: slots are filled in the order of the arguments, those of one as they were saved",
          "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4).op("mul.Tensor", {1}, 5);
  run.enter("w", {4, 5}).slot(7, 5, 1).slot(9, 4, 0).op("mul.Tensor", {4, 5}, 6);
  run.slot(3, 4, 0).op("mul.Tensor", {6, 4}, 7);
  run.boundary(0, 0, 7, 8).leave("w", {8}).end_region();
  run.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  const Events events = run.predicted();
  REQUIRE(events.size() > 7);
  CHECK(Events(events.begin() + 3, events.begin() + 8) ==
        Events{"skip w#0", "fill x9", "fill x3", "fill x7", "save f0.0"});
}

TEST_CASE("R18: a replay may stop at a boundary, and enters no call after it", "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4);
  run.enter("a", {4}).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.boundary(0, 0, 5, 6).leave("a", {6});
  run.enter("b", {6}).kept(1, 6).op("sin.default", {6}, 7).leave("b", {7}).end_region();
  run.op("sum.default", {7}, 8, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"unpack x1", "replay u0#0", "op aten.mul.Tensor", "skip a#0",
                                  "fill x0", "save f0.0", "stop", "end", "unpack f0.0",
                                  "unpack x0"});
}

TEST_CASE("R18: a region in a body reads its inputs from the call's slots", "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4).enter("w", {4});
  // Some code saves a tensor of its own before the inputs.
  run.begin_region(1).kept(0, 3).slot(1, 4, 0).inputs(1, {4});
  run.save(1, 4).op("sin.default", {4}, 5).end_region();
  run.boundary(0, 0, 5, 6).leave("w", {6}).end_region();
  run.op("sum.default", {6}, 7, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip w#0", "fill x1",
                                  "save f0.0", "stop", "end", "unpack f0.0", "unpack x0",
                                  "unpack x1", "replay u1#0", "save f1.0", "stop", "end",
                                  "unpack f1.0"});
}

TEST_CASE("R18: a region in another's replay is a new forward: its calls run", "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).begin_region(1).save(0, 1).inputs(1, {1}).op("mul.Tensor", {1}, 4);
  run.enter("w", {4}).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.boundary(1, 0, 5, 6).leave("w", {6}).end_region();
  run.save(0, 6).op("cos.default", {6}, 7).end_region();
  run.op("sum.default", {7}, 8, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() ==
        Events{"replay u0#0", "save f0.0", "op aten.mul.Tensor", "op aten.sin.default", "save f0.1",
               "stop", "end", "unpack f0.1", "unpack f0.0", "replay u1#0", "op aten.mul.Tensor",
               "skip w#0", "fill x0", "save f1.0", "stop", "end", "unpack f1.0", "unpack x0"});
}

TEST_CASE("R19: a second replay of a frame ends at its first call", "[sim]") {
  WrappedRecording run = one_call();
  run.phase("backward", R"(,"retain":true)").end_phase().phase("backward").end_phase();
  const Events events = run.predicted();
  REQUIRE(events.size() > 5);
  CHECK(Events(events.end() - 5, events.end()) == Events{"replay u0#0", "save f0.0",
                                                         "op aten.sin.default", "end",
                                                         "error builtins.RuntimeError"});
}

TEST_CASE("R20: a placeholder may be handed to another call", "[sim]") {
  WrappedRecording run = unkept_call();
  run.enter("b", {6}).kept(1, 6).op("cos.default", {6}, 7).leave("b", {7});
  run.save(0, 7).op("cos.default", {7}, 8).end_region();
  run.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "save f0.0", "op aten.sin.default", "skip w#0",
                                  "fill x0", "save f0.1", "skip b#0", "save f0.2", "stop", "end",
                                  "unpack f0.2", "unpack x1", "unpack f0.1", "unpack x0",
                                  "unpack f0.0"});
}

TEST_CASE("R20: an op raises where a placeholder's shape does not go with another", "[sim]") {
  WrappedRecording run = unkept_call();
  run.op("add.Tensor", {6, 4}, 7).save(0, 7).op("cos.default", {7}, 8).end_region();
  run.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "save f0.0", "op aten.sin.default", "skip w#0",
                                  "fill x0", "save f0.1", "end", "error builtins.RuntimeError"});
}

TEST_CASE("R20: a save of another shape than forward's is an error after the replay", "[sim]") {
  WrappedRecording run = unkept_call();
  run.op("mul.Tensor", {6}, 7).save(0, 7).op("cos.default", {7}, 8).end_region();
  run.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  const Events events = run.predicted();
  REQUIRE(events.size() > 4);
  const std::string error =
      "error hyper_parallel.platform.torch.activation_checkpoint.checkpoint.CheckpointError";
  CHECK(Events(events.end() - 5, events.end()) ==
        Events{"op aten.mul.Tensor", "save f0.2", "stop", "end", error});
}

TEST_CASE("R20: the sum of a placeholder looks like that of its tensor", "[sim]") {
  WrappedRecording run = unkept_call();
  run.op("sum.default", {6}, 7, "[]").save(0, 7).op("cos.default", {7}, 8, "[]").end_region();
  run.op("mul.Tensor", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  const Events events = run.predicted();
  CHECK(std::count(events.begin(), events.end(), "error builtins.RuntimeError") == 0);
  CHECK(events.back() == "unpack f0.0");
}

TEST_CASE("R20: a node does not take a slot that was filled from a placeholder", "[sim]") {
  WrappedRecording run = unkept_call();
  run.op("mul.Tensor", {6}, 7).enter("b", {7}).slot(1, 7, 0).op("sin.default", {7}, 8);
  run.boundary(0, 0, 8, 9).leave("b", {9}).end_region();
  run.op("sum.default", {9}, 10, "[]").end_phase().phase("backward").end_phase();
  const Events events = run.predicted();
  REQUIRE(events.size() > 3);
  CHECK(Events(events.end() - 3, events.end()) ==
        Events{"unpack f0.2", "unpack x1", "error builtins.RuntimeError"});
}

TEST_CASE("R20: what an op made of others does with a placeholder is not told", "[sim]") {
  WrappedRecording run = unkept_call();
  run.save(0, 2).save(0, 6).op("mm.default", {6, 2}, 7).end_region();
  run.op("sum.default", {7}, 8, "[]").end_phase().phase("backward").end_phase();
  CHECK(is_unsupported(run));
}

TEST_CASE("R25: a write to a parameter is silent, one to a frame's input is not", "[sim]") {
  const Events silent = one_call().update(2).phase("backward").end_phase().predicted();
  CHECK(silent.back() == "unpack f0.0");
  CHECK(one_call().update(1).phase("backward").end_phase().predicted() ==
        Events{"error builtins.RuntimeError"});
}

TEST_CASE("R25: what a skipped body would have written goes on unwritten", "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4).enter("w", {4}).slot(0, 4, 0);
  run.op("sin.default", {4}, 5).op("mul_.Tensor", {4}, 4);
  run.event(R"("kind":"mutate","tensor":4,"storage":4)");
  run.boundary(0, 0, 5, 6).leave("w", {6});
  run.op("add.Tensor", {6, 4}, 7).save(0, 7).op("cos.default", {7}, 8).end_region();
  run.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  CHECK(run.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip w#0", "fill x0",
                                  "save f0.0", "op aten.add.Tensor", "save f0.1", "stop", "end",
                                  "unpack f0.1", "unpack f0.0", "unpack x0"});
}

TEST_CASE("R26: what cannot be known is unsupported", "[sim]") {
  WrappedRecording raises;
  raises.region(0, {1}).enter("w", {1}).leave("w", {}, "ValueError").end_region();
  CHECK(is_unsupported(raises));
  WrappedRecording cleared = one_call();
  CHECK(is_unsupported(cleared.phase("forward").event(R"("kind":"cache_clear","frame":0)")));
  WrappedRecording returned;
  returned.region(0, {1}).enter("w", {1}, false).leave("w", {1}).end_region();
  CHECK(is_unsupported(returned));
  WrappedRecording overlaps;
  overlaps.region(0, {1}).enter("w", {1}).end_region().leave("w", {1});
  CHECK(is_unsupported(overlaps));
  WrappedRecording hidden;  // read after the body, and none of its outputs
  hidden.region(0, {1}).op("mul.Tensor", {1}, 4).enter("w", {4}).slot(0, 4, 0);
  hidden.op("sin.default", {4}, 5).boundary(0, 0, 5, 6).leave("w", {6});
  hidden.op("add.Tensor", {6, 5}, 7).save(0, 7).op("cos.default", {7}, 8).end_region();
  hidden.op("sum.default", {8}, 9, "[]").end_phase().phase("backward").end_phase();
  CHECK(is_unsupported(hidden));
  WrappedRecording unknown;
  unknown.region(0, {1}).enter("w", {1}).slot(0, 1, 4).leave("w", {1}).end_region();
  CHECK(is_unsupported(unknown));
}
