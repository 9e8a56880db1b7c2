#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/remat_stage.hpp"

// What is alive after a forward with regions of torch_remat, worked out by hand (protocols.md P7):
// R = A(in) + Σ A(S_w \ I_w) + Σ persisted outputs, each storage once. A tensor has 128 bytes, the
// loss 4; parameters and the model's input are in no count.

using namespace remat;

namespace {

constexpr std::int64_t tensor_bytes = 128;
constexpr std::int64_t loss_bytes = 4;

/// The checkpointed region's own argument is t.
ScenarioRun run_from_t(const std::string& body, const std::string& protocol = "remat") {
  return run_stage(op("scale", {"x"}, {"t"}) + "," + checkpoint("r", body) + "," + loss_of("y"),
                   protocol);
}

struct Resident {
  std::int64_t input = 0;
  std::int64_t in_bodies = 0;
  std::int64_t persisted = 0;
};
/// Numbers of tensors.
void require_resident(const std::string& body, const Resident& expected) {
  const ScenarioRun run = run_from_t(body);
  require_sound(run, run_from_t(body, "none"));
  CHECK(resident(run, OwnerClass::region_input) == expected.input * tensor_bytes);
  CHECK(resident(run, OwnerClass::excl_saved) == expected.in_bodies * tensor_bytes);
  CHECK(resident(run, OwnerClass::persisted) == expected.persisted * tensor_bytes);
  CHECK(run.result.resident_bytes ==
        (expected.input + expected.in_bodies + expected.persisted) * tensor_bytes + loss_bytes);
}

const std::string make_a_of_t = op("cos", {"t"}, {"a"}) + ",";

}  // namespace

TEST_CASE("P7: resident are the region's input, what bodies keep and what a replay is served",
          "[sim][remat]") {
  // Of s: a waits for the replay, g1 and g2 are its own, h1 to h3 are read by c, d by nobody.
  const std::string body_of_s = op("sin", {"a"}, {"g1"}) + "," + op("sin", {"g1"}, {"g2"}) + "," +
                                op("sin", {"g2"}, {"h1"}) + "," + op("scale", {"h1"}, {"h2"}) +
                                "," + op("scale", {"h2"}, {"h3"}) + "," +
                                op("scale", {"h3"}, {"d"});
  require_resident(
      make_a_of_t + saved("s", in_a + R"(,"out":["h1","h2","h3","d"])", body_of_s) + "," +
          recomputed("c", R"("in":["h1","h2","h3"])",
                     op("mul", {"h1", "h2"}, {"m"}) + "," + op("mul", {"m", "h3"}, {"y"})),
      {.input = 1, .in_bodies = 2, .persisted = 3});
}

TEST_CASE("P7: without saved regions a checkpoint keeps its input", "[sim][remat]") {
  require_resident(make_a_of_t + recomputed("c", in_a, op("sin", {"a"}, {"y"})), {.input = 1});
}

TEST_CASE("P7: an argument of the checkpoint that a body saves is kept once", "[sim][remat]") {
  require_resident(saved("s", R"("in":["t"])", op("sin", {"t"}, {"y"})), {.input = 1});
  const ScenarioRun run = run_from_t(saved("s", R"("in":["t"])", op("sin", {"t"}, {"y"})));
  // What comes back is the very tensor that the checkpoint has kept, and counts as that.
  CHECK(run.kinds(Kind::remat_rederive) == 1);
  CHECK(run.result.rederived_bytes == 0);
}

TEST_CASE("P7: a storage that backward and a replay need is counted for backward", "[sim][remat]") {
  // h is what the next body saves, and what c reads.
  const std::string make_h =
      make_a_of_t + saved("s", in_a + R"(,"out":"h")", op("mul", {"a", "a"}, {"h"})) + ",";
  const std::string saves_h = saved("t", R"("in":["h"],"out":"k")", op("sin", {"h"}, {"k"})) + ",";
  const std::string reads_h = recomputed("c", R"("in":["h"])", op("sin", {"h"}, {"b"})) + ",";
  const std::string reads_k = recomputed("d", R"("in":["b","k"])", op("add", {"b", "k"}, {"y"}));
  require_resident(make_h + saves_h + reads_h + reads_k,
                   {.input = 1, .in_bodies = 1, .persisted = 1});  // h; k
}

TEST_CASE("P7: outputs on one storage are kept once", "[sim][remat]") {
  const std::string body_of_s = op("mul", {"a", "a"}, {"h"}) + "," + flat("h", "v");
  require_resident(make_a_of_t + saved("s", in_a + R"(,"out":["h","v"])", body_of_s) + "," +
                       recomputed("c", R"("in":["v"])", op("sin", {"v"}, {"y"})),
                   {.input = 1, .persisted = 1});
}

TEST_CASE("P7: of a chain of saved regions only what leaves it is kept", "[sim][remat]") {
  const std::string chain =
      saved("s1", in_a + R"(,"out":"h1")", op("mul", {"a", "a"}, {"h1"})) + "," +
      saved("s2", R"("in":["h1"],"out":"h2")", op("scale", {"h1"}, {"h2"})) + "," +
      saved("s3", R"("in":["h2"],"out":"h3")", op("scale", {"h2"}, {"h3"})) + ",";
  require_resident(
      make_a_of_t + chain + recomputed("c", R"("in":["h3"])", op("sin", {"h3"}, {"y"})),
      {.input = 1, .persisted = 1});
  // And nothing where it is the end of the checkpoint.
  require_resident(
      make_a_of_t + chain + saved("s4", R"("in":["h3"],"out":"y")", op("scale", {"h3"}, {"y"})),
      {.input = 1});
}

TEST_CASE("P7: a replay adds what it makes and brings, one region at a time", "[sim][remat]") {
  const std::string body = make_a_of_t + recomputed("c", in_a, op("sin", {"a"}, {"b"})) + "," +
                           saved("s", R"("in":["b"],"out":"h")", op("mul", {"b", "b"}, {"h"})) +
                           "," + recomputed("d", R"("in":["h"])", op("sin", {"h"}, {"y"}));
  const ScenarioRun run = run_from_t(body);
  CHECK(run.result.resident_bytes == 2 * tensor_bytes + loss_bytes);  // t, h
  // a and b wait for backward, y is made and dropped; h is there already.
  CHECK(run.result.replay_peak_bytes == 3 * tensor_bytes);
  CHECK(run.result.rederived_bytes == tensor_bytes);  // b, in both of mul's slots
}
