#include "traces/rebuild/rebuild.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/rebuild_text.hpp"

namespace remat {
namespace {

using Lines = std::vector<std::string>;

bool holds(const RebuiltRun& run, const std::string& name) {
  return std::any_of(run.program.parameters.begin(), run.program.parameters.end(),
                     [&](ValueId value) { return run.program.values[value].name == name; });
}

}  // namespace

TEST_CASE("packs before an op that are its inputs are its saves", "[traces]") {
  const RebuiltRun run =
      SmallRecording().plain(2).plain(1).op("aten.mm.default", {1, 2}, {4}).end_phase().rebuilt();
  CHECK_FALSE(run.unsupported);
  CHECK(forward_lines(run) == Lines{"mm(input, w) -> t4 saves w, input"});
  CHECK(run.program.values[*run.program.forwards[0].root].name == "t4");
}

TEST_CASE("packs between two ops are first the saved outputs of the one before", "[traces]") {
  // tanh saves its output, sin its input: the same tensor twice.
  const RebuiltRun run = SmallRecording()
                             .op("aten.tanh.default", {1}, {4})
                             .plain(4)
                             .plain(4)
                             .op("aten.sin.default", {4}, {5})
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) == Lines{"tanh(input) -> t4 saves after t4", "sin(t4) -> t5 saves t4"});
}

TEST_CASE("a pack that the op before has no rule for, but reads, is the next one's input",
          "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.add.Tensor", {1, 2}, {4})
                             .plain(4)
                             .op("aten.sin.default", {4}, {5})
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) == Lines{"add(input, w) -> t4", "sin(t4) -> t5 saves t4"});
}

TEST_CASE("all up to the last pack that is no input of the next op is the op's before",
          "[traces]") {
  // A function of its own packs 4, 2 and 1 behind its body; mm reads 4 and 3, and packs 3 alone.
  const RebuiltRun run = SmallRecording()
                             .op("aten.empty.memory_format", {1}, {4})
                             .plain(4)
                             .plain(2)
                             .plain(1)
                             .plain(3)
                             .op("aten.mm.default", {4, 3}, {5})
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) == Lines{"empty(input) -> t4 saves after t4, after w, after input",
                                    "mm(t4, v) -> t5 saves v"});
}

TEST_CASE("a detach between two ops does not part their packs", "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.tanh.default", {1}, {4})
                             .plain(4)
                             .op("aten.detach.default", {4}, {6})
                             .plain(2)
                             .op("aten.mul.Tensor", {4, 2}, {5})
                             .end_phase()
                             .rebuilt();
  const Lines lines = forward_lines(run);
  CHECK(lines.front() == "tanh(input) -> t4 saves after t4");
  CHECK(lines.back() == "mul(t4, w) -> t5 saves w");
}

TEST_CASE("the border of a unit and the end of a phase give all packs to the op before",
          "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .unit("a", R"(,"checkpointed":false)")
                             .op("aten.mul.Tensor", {1, 2}, {4})
                             .plain(4)
                             .end_unit("a")
                             .op("aten.sin.default", {4}, {5})
                             .plain(5)
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) == Lines{"unit a#0()", "mul(input, w) -> t4 saves after t4", "end",
                                    "sin(t4) -> t5 saves after t5"});
}

TEST_CASE("a unit's begin gives the packs before it to the op before", "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.mul.Tensor", {1, 2}, {4})
                             .plain(4)
                             .unit("a", R"(,"checkpointed":false)")
                             .op("aten.sin.default", {4}, {5})
                             .end_unit("a")
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run).front() == "mul(input, w) -> t4 saves after t4");
}

TEST_CASE("a frame's input slots are its arguments, not saves of its body", "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .unit("a", R"(,"frame":0)")
                             .frame(0, "a", {1})
                             .pack(0, 0, 1)
                             .op("aten.sin.default", {1}, {4})
                             .end_unit("a")
                             .end_phase()
                             .rebuilt();
  CHECK(run.has_regions);
  CHECK_FALSE(run.has_reentrant_regions);
  CHECK(forward_lines(run) == Lines{"region a#0(input)", "sin(input) -> t4 saves input", "end"});
}

TEST_CASE("where the recorder saw no plain saves, the table of kinds says what is saved",
          "[traces]") {
  const RebuiltRun run = SmallRecording(false)
                             .op("aten.mm.default", {1, 2}, {4})
                             .op("aten.tanh.default", {4}, {5})
                             .end_phase()
                             .rebuilt();
  CHECK_FALSE(run.has_ambient_hooks);
  CHECK(forward_lines(run) ==
        Lines{"mm(input, w) -> t4 saves w, input", "tanh(t4) -> t5 saves after t5"});
  CHECK(SmallRecording(true).rebuilt().has_ambient_hooks);
}

TEST_CASE("an op without packs whose kind saves something has no node where saves are shown",
          "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.sin.default", {1}, {4})
                             .op("aten.add.Tensor", {1, 2}, {5})
                             .op("aten.gt.Scalar", {5}, {6})
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) ==
        Lines{"sin(input) -> t4 [no node]", "add(input, w) -> t5", "gt(t5) -> t6 [no node]"});
}

TEST_CASE("frames without unit_begin are regions of their own, ended by the next frame or op",
          "[traces]") {
  // checkpoint_sequential: each frame ends with its last pack.
  const RebuiltRun run = SmallRecording()
                             .frame(0, "anon0", {1})
                             .pack(0, 0, 1)
                             .op("aten.sin.default", {1}, {4})
                             .frame(1, "anon1", {4})
                             .pack(1, 0, 4)
                             .op("aten.cos.default", {4}, {5})
                             .plain(5)
                             .op("aten.pow.Tensor_Scalar", {5}, {6})
                             .end_phase()
                             .rebuilt();
  CHECK_FALSE(run.unsupported);
  CHECK(forward_lines(run) == Lines{"region anon0#0(input)", "sin(input) -> t4 saves input", "end",
                                    "region anon1#0(t4)", "cos(t4) -> t5 saves t4", "end",
                                    "pow(t5) -> t6 saves t5"});
}

TEST_CASE("a reentrant region's body is without saves, and its arguments are what its node saves",
          "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .unit("a", R"(,"reentrant":true,"checkpointed":true)")
                             .op("aten.mm.default", {1, 2}, {4})
                             .op("aten.tanh.default", {4}, {5})
                             .plain(1)
                             .end_unit("a")
                             .end_phase()
                             .rebuilt();
  CHECK(run.has_regions);
  CHECK(run.has_reentrant_regions);
  CHECK(forward_lines(run).front() == "region a#0(input)");
  const auto& values = run.program.values;
  const auto output = std::find_if(values.begin(), values.end(),
                                   [](const ProgramValue& value) { return value.name == "t5"; });
  REQUIRE(output != values.end());
  CHECK(output->requires_grad);
}

TEST_CASE(
    "where plain saves are not shown, a reentrant region's arguments are what it reads from "
    "outside but parameters",
    "[traces]") {
  const RebuiltRun run = SmallRecording(false)
                             .op("aten.sin.default", {1}, {4})
                             .unit("a", R"(,"reentrant":true,"checkpointed":true)")
                             .op("aten.mm.default", {4, 2}, {5})
                             .op("aten.add.Tensor", {5, 1}, {6})
                             .end_unit("a")
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run)[1] == "region a#0(t4, input)");
}

TEST_CASE("parameters come in the order in which setup names them, inputs are none of them",
          "[traces]") {
  const RebuiltRun run = SmallRecording().op("aten.mm.default", {1, 3}, {4}).end_phase().rebuilt();
  REQUIRE(run.program.parameters.size() == 2);
  CHECK(run.program.values[run.program.parameters[0]].name == "w");
  CHECK(run.program.values[run.program.parameters[1]].name == "v");
  CHECK_FALSE(holds(run, "input"));
}

TEST_CASE("a freed storage ends the variables in it", "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.add.Tensor", {1, 2}, {4})
                             .op("aten.add.Tensor", {4, 2}, {5})
                             .event(R"("kind":"storage_free","storage":4)")
                             .event(R"("kind":"storage_free","storage":1)")
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) == Lines{"add(input, w) -> t4", "add(t4, w) -> t5", "release t4"});
}

TEST_CASE("the order of phases is that of the recording", "[traces]") {
  SmallRecording recording;
  recording.op("aten.add.Tensor", {1, 2}, {4}).end_phase();
  for (const char* phase : {"backward_input", "backward_weight", "backward", "optimizer"})
    recording.phase(phase).end_phase();
  const RebuiltRun run = recording.rebuilt();
  using Step = PhaseStep::Kind;
  std::vector<Step> kinds;
  for (const PhaseStep& step : run.order)
    kinds.push_back(step.kind);
  CHECK(kinds ==
        std::vector<Step>{Step::forward, Step::dx, Step::dw, Step::backward, Step::update});
  CHECK(run.program.forwards.size() == 1);
}

TEST_CASE("what a recording does not show is unsupported, with the reason", "[traces]") {
  const auto why = [](const SmallRecording& recording) {
    return recording.rebuilt().unsupported.value_or("supported");
  };
  SmallRecording inside;
  inside.unit("a", R"(,"reentrant":true,"checkpointed":true)")
      .unit("b", R"(,"checkpointed":true)")
      .op("aten.sin.default", {1}, {4});
  CHECK(why(inside) ==
        "a non-reentrant region inside a reentrant one packs nothing in forward (R13)");
  SmallRecording asked;
  asked.op("aten.sin.default", {1}, {4}).plain(4).event(R"("kind":"unpack","slot":"p0")");
  CHECK(why(asked) == "a gradient is asked for inside a forward: what for is not recorded");
  SmallRecording triggered;
  triggered.op("aten.sin.default", {1}, {4}).end_phase().phase("pretrigger");
  CHECK(why(triggered) == "a pretrigger phase: what it reads is not visible in the forward part");
  CHECK(why(SmallRecording().region("l1", "save")) == "a forward ends inside an excluded region");
  SmallRecording left_open;
  left_open.event(R"("kind":"wrapper_enter","wrapper":"g","call":0)").end_phase();
  CHECK(why(left_open) == "a forward ends inside a region: what was raised there is not recorded");
  SmallRecording left_twice;
  left_twice.event(R"("kind":"wrapper_exit","wrapper":"g","ended_by":"return")").end_phase();
  CHECK(why(left_twice) == "an excluded region is left that was not entered");
  CHECK(rebuild(Trace{}).unsupported ==
        "the recording shows no phase: nothing says what the run did");
}

TEST_CASE("units inside a reentrant region that are not checkpointed are no hindrance",
          "[traces]") {
  CHECK_FALSE(SmallRecording()
                  .unit("a", R"(,"reentrant":true,"checkpointed":true)")
                  .unit("b", R"(,"checkpointed":false)")
                  .op("aten.sin.default", {1}, {4})
                  .end_unit("b")
                  .end_unit("a")
                  .end_phase()
                  .rebuilt()
                  .unsupported);
}

}  // namespace remat
