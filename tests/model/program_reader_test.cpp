#include <catch2/catch.hpp>
#include <string>

#include "model/shapes.hpp"
#include "sim/scenario.hpp"

// What statements leave unsaid.

namespace remat {
namespace {

/// "f32 [4, 8]" for each output of the op, over a tensor `x` of bf16 [4, 8] and parameters.
std::string outputs_of(const std::string& statement) {
  const Scenario scenario = parse_scenario("s.json", R"({
    "format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"shape": [4, 8], "dtype": "bf16", "requires_grad": true},
                 "image": {"shape": [2, 3, 5, 5], "requires_grad": true}},
      "params": {"w": {"shape": [8]}, "c": {"shape": [3]}},
      "stages": [[)" + statement + "]]}}");
  std::string text;
  for (const Statement& made : scenario.program.forwards.front().statements) {
    const auto* op = std::get_if<OpStatement>(&made);
    if (op == nullptr) continue;
    for (const ValueId output : op->outputs) {
      const TensorLayout& layout = scenario.program.values[output].layout;
      text += (text.empty() ? "" : ", ") + layout.dtype + " " + shown_shape(layout.shape);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("what an op makes beside its first output follows from its kind", "[model]") {
  // A mask for all that may be dropped, an index for all that is picked, statistics of each row or
  // channel.
  CHECK(outputs_of(R"({"random": "dropout", "in": ["x"], "out": ["y", "mask"]})") ==
        "bf16 [4, 8], bool [4, 8]");
  CHECK(outputs_of(R"({"op": "native_dropout", "in": ["x"], "out": ["y", "mask"]})") ==
        "bf16 [4, 8], bool [4, 8]");
  CHECK(outputs_of(R"({"op": "topk", "in": ["x"], "out": ["y", "i"], "shape": [4, 2]})") ==
        "bf16 [4, 2], i64 [4, 2]");
  CHECK(outputs_of(R"({"op": "sort", "in": ["x"], "out": ["y", "i"]})") ==
        "bf16 [4, 8], i64 [4, 8]");
  CHECK(outputs_of(R"({"op": "max_pool2d_with_indices", "in": ["image"], "out": ["y", "i"],
                       "shape": [2, 3, 2, 2]})") == "f32 [2, 3, 2, 2], i64 [2, 3, 2, 2]");
  CHECK(outputs_of(R"({"op": "native_layer_norm", "in": ["x", "w", "w"],
                       "out": ["y", "mean", "rstd"]})") == "bf16 [4, 8], bf16 [4, 1], bf16 [4, 1]");
  CHECK(outputs_of(R"({"op": "native_batch_norm", "in": ["image", "c", "c", "c", "c"],
                       "out": ["y", "mean", "rstd"]})") == "f32 [2, 3, 5, 5], f32 [3], f32 [3]");
  CHECK(outputs_of(R"({"op": "attention", "in": ["x", "x", "x"], "out": ["y", "sums"]})") ==
        "bf16 [4, 8], bf16 [4, 1]");
  CHECK(outputs_of(R"({"view": "split", "in": ["x"], "out": ["a", "b"], "shape": [4, 4]})") ==
        "bf16 [4, 4], bf16 [4, 4]");
}

TEST_CASE("a statement says itself what its op makes beside the first output", "[model]") {
  CHECK(outputs_of(R"({"random": "dropout", "in": ["x"], "out": ["y", "mask"],
                       "shapes": [[4, 8], [4, 1]], "dtypes": ["bf16", "u8"]})") ==
        "bf16 [4, 8], u8 [4, 1]");
  CHECK(outputs_of(R"({"random": "dropout", "in": ["x"], "out": ["y", "mask"], "dtype": "f32"})") ==
        "f32 [4, 8], f32 [4, 8]");
}

}  // namespace remat
