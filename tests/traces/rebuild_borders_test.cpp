#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/rebuild_text.hpp"
#include "traces/rebuild/rebuild.hpp"

// What a recording leaves open: followed where a rule of observed-torch.md §8 decides it, refused
// with a reason where a prediction would be a guess.

namespace remat {
namespace {

using Lines = std::vector<std::string>;

/// An in-place write as a recorder tells it.
std::string mutate(int tensor) {
  return R"("kind":"mutate","tensor":)" + std::to_string(tensor) + R"(,"storage":)" +
         std::to_string(tensor);
}

std::size_t n_writes(const RebuiltRun& run) {
  std::size_t n = 0;
  for (const Statement& statement : run.program.forwards.front().statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    n += op != nullptr && op->writes ? 1 : 0;
  }
  return n;
}

}  // namespace

TEST_CASE("R3: the body of a custom Function stays passable, its saves are its last op's",
          "[traces]") {
  // exp and mul would save something of their own; here the Function packs 2 behind its body.
  const RebuiltRun run = SmallRecording()
                             .op("aten.exp.default", {1}, {4})
                             .op("aten.mul.Tensor", {4, 4}, {5})
                             .plain(2)
                             .plain(5)
                             .op("aten.sin.default", {5}, {6})
                             .end_phase()
                             .rebuilt();
  CHECK(forward_lines(run) ==
        Lines{"exp(input) -> t4", "mul(t4, t4) -> t5 saves after w", "sin(t5) -> t6 saves t5"});
}

TEST_CASE("R10: a write is what a mutate event says, whatever the op is called", "[traces]") {
  for (const char* name : {"aten.add_.Tensor", "aten.add.out", "aten._foreach_add_.Scalar"}) {
    SmallRecording recording;
    recording.op("aten.sin.default", {1}, {4}).end_phase();
    recording.phase("setup").op(name, {4}, {4}).event(mutate(4));
    CAPTURE(name);
    CHECK(n_writes(recording.rebuilt()) == 1);
  }
}

TEST_CASE("a save that no op of its region made or reads is refused", "[traces]") {
  const RebuiltRun run = SmallRecording()
                             .op("aten.sin.default", {1}, {4})
                             .unit("a")
                             .frame(0, "a", {4})
                             .pack(0, 0, 2)
                             .op("aten.cos.default", {4}, {5})
                             .end_unit("a")
                             .end_phase()
                             .rebuilt();
  CHECK(run.unsupported == "a tensor is saved that no op of its region made or reads");
}

TEST_CASE("a tensor of one forward that another reads is refused", "[traces]") {
  SmallRecording recording;
  recording.op("aten.sin.default", {1}, {4}).end_phase();
  recording.phase("forward").event(R"("kind":"phase_begin")");
  recording.op("aten.add.Tensor", {1, 4}, {5}).end_phase();
  CHECK(recording.rebuilt().unsupported ==
        "a tensor that one forward made is read or written in another");
}

TEST_CASE("units nested without end are refused", "[traces]") {
  SmallRecording recording;
  for (int i = 0; i < 1000; ++i)
    recording.unit("u", R"(,"checkpointed":false)");
  CHECK(recording.end_phase().rebuilt().unsupported == "regions are nested more than 256 deep");
}

TEST_CASE("a forward that ends inside a region is refused: something was raised there",
          "[traces]") {
  const RebuiltRun run =
      SmallRecording().unit("a").op("aten.sin.default", {1}, {4}).end_phase().rebuilt();
  CHECK(run.unsupported == "a forward ends inside a region: what was raised there is not recorded");
}

}  // namespace remat
