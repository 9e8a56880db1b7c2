#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/rebuild_text.hpp"
#include "traces/rebuild/rebuild.hpp"

// Programs from recordings with regions of torch_remat (observed-torch.md §5, §8 R11). A recorder
// shows no tensor of what a replay is to bring: which it is, the ops around tell.

namespace remat {
namespace {

using Lines = std::vector<std::string>;

/// Frame 0 of unit `u`, which is given x; its body has made tensor 4 of that.
SmallRecording begun() {
  SmallRecording recording;
  recording.unit("u", R"(,"frame":0)")
      .frame(0, "u", {1})
      .pack(0, 0, 1)
      .op("aten.cos.default", {1}, {4});
  return recording;
}
/// The trigger, made of tensor `output`; the unit's end, and a loss.
SmallRecording& finish(SmallRecording& recording, int output) {
  recording.op("aten.empty.memory_format", {}, {90})
      .op("aten.view.default", {output}, {91})
      .pack(0, 1, 90)
      .end_unit("u");
  return recording.op("aten.sum.default", {91}, {92}).end_phase();
}

/// The statements of the body between what `begun` and `finish` write.
Lines body_lines(const RebuiltRun& run) {
  Lines lines;
  bool is_inside = false;
  for (const std::string& line : forward_lines(run)) {
    if (line.starts_with("empty(")) break;
    const bool is_release = line.starts_with("release");
    if (is_inside && !is_release) lines.push_back(line);
    is_inside |= line.starts_with("cos(");
  }
  return lines;
}

Lines rebuilt_body(SmallRecording& recording, int output) {
  const RebuiltRun run = finish(recording, output).rebuilt();
  CHECK(run.unsupported == std::nullopt);
  CHECK(run.has_remat_regions);
  return body_lines(run);
}

/// Why no program can be made of a forward that goes on like this.
std::string refusal(SmallRecording& recording) {
  return recording.end_phase().rebuilt().unsupported.value_or("none");
}

std::string user_pack(const std::string& kind) {
  return R"("kind":"remat_user_pack","save_kind":")" + kind + R"(","shape":[2,2])";
}

}  // namespace

TEST_CASE("R11: a saved input that is not shown is what the op's table says", "[traces]") {
  // mm packs its second argument first.
  SmallRecording recording = begun();
  recording.region("s", "save")
      .op("aten.detach.default", {2}, {5})
      .kept(0, 2)
      .brought(0, "[0]")
      .op("aten.mm.default", {4, 2}, {6})
      .end_region();
  CHECK(rebuilt_body(recording, 6) == Lines{"saved s(t4 at [0])",
                                            "mm(t4, w) -> t6 saves w [slot 0], t4 [slot 0 of "
                                            "input 0]",
                                            "leave"});
}

TEST_CASE("R11: saved inputs of one path are one argument", "[traces]") {
  SmallRecording recording = begun();
  recording.region("s", "save")
      .brought(0, "[0]")
      .brought(1, "[0]")
      .op("aten.mul.Tensor", {4, 4}, {5})
      .end_region();
  CHECK(rebuilt_body(recording, 5) ==
        Lines{"saved s(t4 at [0])",
              "mul(t4, t4) -> t5 saves t4 [slot 0 of input 0], t4 [slot 1 of input 0]", "leave"});
}

TEST_CASE("R11: where the table does not tell, it is the first argument from outside", "[traces]") {
  // index saves its indices alone; here the op packs two of its arguments.
  SmallRecording recording = begun();
  recording.region("s", "save")
      .op("aten.detach.default", {3}, {5})
      .op("aten.exp.default", {5}, {6})
      .brought(0, "[0]")
      .brought(1, "[1]")
      .op("aten.sin.default", {6, 4, 2}, {7})
      .end_region();
  CHECK(rebuilt_body(recording, 7).at(3) ==
        "sin(t6, t4, w) -> t7 saves t4 [slot 0 of input 0], w [slot 1 of input 1]");
}

TEST_CASE("R11: a saved view is of the argument that it looks at", "[traces]") {
  SmallRecording recording = begun();
  const std::string view =
      R"("kind":"op","name":"aten.view.default","inputs":[4],"outputs":[{"t":5,"s":4,"dtype":"f32","shape":[4],"stride":[1],"off":0,"bytes":16,"v":0}])";
  recording.region("s", "save")
      .event(view)
      .brought(0, "[0]", true)
      .op("aten.sin.default", {5}, {6})
      .end_region();
  CHECK(rebuilt_body(recording, 6) == Lines{"saved s(t4 at [0])", "view(t4) -> t5",
                                            "sin(t5) -> t6 saves t5 [slot 0 of input 0]", "leave"});
}

TEST_CASE("R3, R11: what a custom Function saves of its arguments comes behind its body",
          "[traces]") {
  SmallRecording recording = begun();
  recording.region("s", "save")
      .op("aten.sin.default", {4}, {5})
      .op("aten.mm.default", {5, 2}, {6})
      .brought(0, "[0]")
      .brought(1, "[1]")
      .brought(2, "[0]")
      .op("aten.detach.default", {5}, {7})
      .kept(0, 5)
      .end_region();
  CHECK(rebuilt_body(recording, 6) ==
        Lines{"saved s(t4 at [0], w at [1])", "sin(t4) -> t5",
              "mm(t5, w) -> t6 saves after t4 [slot 0 of input 0], after w [slot 1 of input 1], "
              "after t4 [slot 2 of input 0], after t5 [slot 0]",
              "leave"});
}

TEST_CASE("R11: an output that is kept for the replay is needed from there on", "[traces]") {
  SECTION("at the begin of a recomputed region") {
    SmallRecording recording = begun();
    recording.region("s", "save").brought(0, "[0]").op("aten.sin.default", {4}, {5}).end_region();
    recording.region("c", "recompute")
        .op("aten.detach.default", {5}, {6})
        .persist(6)
        .op("aten.add.Tensor", {5, 5}, {7})
        .end_region();
    CHECK(rebuilt_body(recording, 7) ==
          Lines{"saved s(t4 at [0])", "sin(t4) -> t5 saves t4 [slot 0 of input 0]", "leave",
                "recomputed c()", "needs t5", "add(t5, t5) -> t7", "leave"});
  }
  SECTION("inside the saved region itself: at its end") {
    SmallRecording recording = begun();
    recording.region("s", "save")
        .op("aten.tanh.default", {4}, {5})
        .op("aten.detach.default", {5}, {6})
        .kept(0, 5)
        .persist(6)
        .end_region();
    CHECK(rebuilt_body(recording, 5) ==
          Lines{"saved s()", "tanh(t4) -> t5 saves after t5 [slot 0]", "leave", "needs t5"});
  }
  SECTION("by hooks of the user's, which show no tensor") {
    SmallRecording recording = begun();
    recording.region("s", "save").brought(0, "[0]").op("aten.sin.default", {4}, {5}).end_region();
    recording.op("aten.detach.default", {5}, {6})
        .event(user_pack("SAVE_OUTPUT"))
        .event(R"("kind":"remat_persist","region":"s","output":0,"tensor":null)")
        .op("aten.exp.default", {5}, {7});
    CHECK(rebuilt_body(recording, 7).at(3) == "needs t5");
  }
}

TEST_CASE("R11: a save that hooks of the user's take is kept, in no slot of the region",
          "[traces]") {
  SmallRecording recording = begun();
  recording.event(user_pack("CHECKPOINT_INPUT"))
      .region("s", "save")
      .op("aten.detach.default", {2}, {5})
      .event(user_pack("BACKWARD"))
      .brought(0, "[0]")
      .op("aten.mm.default", {4, 2}, {6})
      .end_region();
  CHECK(rebuilt_body(recording, 6).at(1) ==
        "mm(t4, w) -> t6 saves w [hooks], t4 [slot 0 of input 0]");
}

TEST_CASE("R11: state hooks of a recording are seen", "[traces]") {
  SmallRecording recording = begun();
  CHECK_FALSE(finish(recording, 4).rebuilt().has_state_hooks);
  SmallRecording hooked = begun();
  hooked.event(R"("kind":"state_hook")");
  CHECK(finish(hooked, 4).rebuilt().has_state_hooks);
}

TEST_CASE("regions of torch_remat that cannot lie where they do are refused", "[traces]") {
  SECTION("inside a reentrant region") {
    SmallRecording recording;
    recording.unit("u", R"(,"reentrant":true)").region("s", "save");
    CHECK(refusal(recording) == "a region of torch_remat inside a reentrant one");
  }
  SECTION("inside one that is saved") {
    SmallRecording recording = begun();
    recording.region("s", "save").region("t", "save");
    CHECK(refusal(recording) == "a region of torch_remat inside one that is saved");
  }
  SECTION("left, not entered") {
    SmallRecording recording = begun();
    recording.end_region();
    CHECK(refusal(recording) == "a region of torch_remat is left that was not entered");
  }
  SECTION("entered, not left") {
    SmallRecording recording;
    recording.region("s", "save").op("aten.sin.default", {1}, {5});
    CHECK(refusal(recording) ==
          "a forward ends inside a region: what was raised there is not recorded");
  }
  SECTION("across the border of a checkpointed one") {
    SmallRecording recording = begun();
    recording.region("c", "recompute").end_unit("u").end_region();
    CHECK(refusal(recording) == "a checkpointed region and one of torch_remat overlap");
  }
  SECTION("beside excluded ones") {
    SmallRecording recording = begun();
    recording.region("c", "recompute")
        .end_region()
        .event(R"("kind":"wrapper_enter","wrapper":"w","call":0,"exec":"forward","frame":0)")
        .op("aten.sin.default", {4}, {5})
        .event(R"("kind":"wrapper_exit","wrapper":"w","call":0,"exec":"forward","frame":0,)"
               R"("ended_by":"return","outputs":[5])");
    finish(recording, 5);
    CHECK(refusal(recording) == "excluded regions beside those of torch_remat");
  }
  SECTION("inside a selective one") {
    SmallRecording recording = begun();
    recording.region("c", "recompute")
        .op("aten.sin.default", {4}, {5})
        .event(R"("kind":"sac_decide","op":"aten.sin.default","saved":true,"tensors":[5])")
        .end_region();
    finish(recording, 5);
    CHECK(refusal(recording) == "excluded regions inside a selective one");
  }
}

TEST_CASE("saves of torch_remat's regions that no event explains are refused", "[traces]") {
  const std::string no_tensor = R"("tensor":null)";
  SECTION("an output is kept") {
    SmallRecording recording = begun();
    recording.event(R"("kind":"remat_persist","region":"s","output":0,)" + no_tensor);
    CHECK(refusal(recording) == "a region keeps an output that no event shows");
  }
  SECTION("hooks of the user's pack") {
    SmallRecording recording = begun();
    recording.region("s", "save").event(user_pack("BACKWARD"));
    CHECK(refusal(recording) == "a user's hook packs a tensor that no event shows");
  }
  SECTION("outside the body of a saved region, or in a slot without a number") {
    const char* why = "a region's save outside its body, or in a slot without a number";
    SmallRecording outside = begun();
    outside.region("c", "recompute").kept(0, 4);
    CHECK(refusal(outside) == why);
    SmallRecording unnumbered = begun();
    unnumbered.region("s", "save")
        .event(R"("kind":"pack","slot":"r","role":"remat_save","region":"s",)" + no_tensor);
    CHECK(refusal(unnumbered) == why);
  }
  SECTION("a tensor that nothing made") {
    SmallRecording recording = begun();
    recording.region("s", "save")
        .event(R"("kind":"pack","slot":"r0","role":"remat_save","region":"s",)" + no_tensor);
    CHECK(refusal(recording) == "a region saves a tensor that no event shows");
  }
  SECTION("an argument for an op that reads none") {
    SmallRecording recording = begun();
    recording.region("s", "save")
        .op("aten.sin.default", {4}, {5})
        .brought(0, "[0]")
        .op("aten.exp.default", {5}, {6});
    CHECK(refusal(recording) == "a region saves an input of its own for an op that reads none");
  }
  SECTION("an argument where no op reads any") {
    SmallRecording recording = begun();
    recording.region("s", "save")
        .op("aten.empty.memory_format", {}, {5})
        .brought(0, "[0]")
        .end_region();
    CHECK(refusal(recording) == "a region saves an input of its own that none of its ops reads");
  }
}

TEST_CASE("a forward that raises in a checkpoint shows as a frame that goes, and is refused",
          "[traces]") {
  const char* why =
      "a region's frame goes in forward and no backward follows: what was raised there is not "
      "recorded";
  const std::string free = R"("kind":"frame_free","frame":0,"unit":"u")";
  // Two regions of one name, one to be recomputed in a saved one, a checkpoint in a checkpoint: the
  // body ends there, and the recorder sees no more than this.
  SmallRecording raised = begun();
  raised.region("c", "recompute").op("aten.sin.default", {4}, {5}).end_region();
  raised.end_unit("u").event(free).end_phase();
  CHECK(raised.rebuilt().unsupported == why);
  SECTION("with a backward it was dropped by the caller") {
    raised.phase("backward").end_phase();
    CHECK(raised.rebuilt().unsupported != why);
  }
  SECTION("a frame that saved no inputs is of a forward without gradients") {
    SmallRecording recording;
    recording.unit("u", R"(,"frame":0)")
        .event(R"("kind":"frame_create","frame":0,"unit":"u","inv":0,"early_stop":true)")
        .op("aten.cos.default", {1}, {4})
        .event(free)
        .end_unit("u");
    CHECK(refusal(recording) == "none");
  }
}

}  // namespace remat
