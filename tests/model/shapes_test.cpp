#include "model/shapes.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace remat {
namespace {

struct Row {
  std::string_view kind;
  std::vector<Shape> inputs;
  Shape shape;
};

/// The first output's shape; fails where the inputs do not go together.
Shape shape_of(std::string_view kind, const std::vector<Shape>& inputs) {
  const InferredShape inferred = infer_shape(*find_op_kind(kind), inputs);
  CHECK(inferred.mismatch == std::nullopt);
  return inferred.shape;
}

std::string mismatch_of(std::string_view kind, const std::vector<Shape>& inputs) {
  return infer_shape(*find_op_kind(kind), inputs).mismatch.value_or("none");
}

}  // namespace

TEST_CASE("each shape rule gives the shape that follows from its inputs", "[model]") {
  const std::vector<Row> rows = {
      {"sin", {{2, 3}}, {2, 3}},
      {"sin", {{}}, {}},
      {"native_layer_norm", {{4, 8}, {8}, {8}}, {4, 8}},
      {"add", {{2, 3}}, {2, 3}},
      {"add", {{2, 3}, {2, 3}}, {2, 3}},
      {"add", {{2, 3}, {3}}, {2, 3}},
      {"add", {{3}, {2, 3}}, {2, 3}},
      {"add", {{2, 1}, {1, 3}}, {2, 3}},
      {"add", {{2, 3}, {}}, {2, 3}},
      {"add", {{}, {}}, {}},
      {"add", {{1}, {5, 1}, {1, 1, 7}}, {1, 5, 7}},
      {"add", {{0, 3}, {1, 3}}, {0, 3}},
      {"mul", {{4, 1, 5}, {3, 1}}, {4, 3, 5}},
      {"mm", {{2, 3}, {3, 4}}, {2, 4}},
      {"matmul", {{2, 3, 4}, {4, 5}}, {2, 3, 5}},
      {"bmm", {{7, 2, 3}, {7, 3, 4}}, {7, 2, 4}},
      {"mm", {{2, 0}, {0, 4}}, {2, 4}},
      {"addmm", {{4}, {2, 3}, {3, 4}}, {2, 4}},
      {"addmm", {{2, 4}, {2, 3}, {3, 4}}, {2, 4}},
      {"addmm", {{}, {2, 3}, {3, 4}}, {2, 4}},
      {"t", {{2, 3}}, {3, 2}},
      {"transpose", {{5, 2, 3}}, {5, 3, 2}},
      {"sum", {{2, 3}}, {}},
      {"mean", {{}}, {}},
      {"cat", {{2, 3}}, {2, 3}},
      {"cat", {{2, 3}, {2, 4}, {2, 0}}, {2, 7}},
      {"cat", {{3}, {4}}, {7}},
      {"embedding", {{100, 16}, {2, 5}}, {2, 5, 16}},
      {"embedding", {{100, 16}, {}}, {16}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind, row.inputs);
    CHECK(shape_of(row.kind, row.inputs) == row.shape);
  }
}

TEST_CASE("inputs that do not go together are told what was expected", "[model]") {
  CHECK(mismatch_of("sin", {}) == "an input, or a shape of its own");
  CHECK(mismatch_of("add", {{2, 3}, {2, 4}}) == "shapes that broadcast");
  CHECK(mismatch_of("add", {{2, 3}, {3, 2, 4}}) == "shapes that broadcast");
  CHECK(mismatch_of("mul", {{0}, {2}}) == "shapes that broadcast");
  CHECK(mismatch_of("mm", {{2, 3}}) == "two inputs");
  CHECK(mismatch_of("mm", {{3}, {3, 4}}) == "matrices of two dimensions or more");
  CHECK(mismatch_of("mm", {{2, 3}, {3}}) == "matrices of two dimensions or more");
  CHECK(mismatch_of("mm", {{2, 3}, {4, 5}}) == "inner dimensions that agree: [2, 3] × [4, 5]");
  CHECK(mismatch_of("addmm", {{4}, {2, 3}}) == "three inputs: bias and two matrices");
  CHECK(mismatch_of("addmm", {{4}, {2, 3}, {4, 4}}) ==
        "inner dimensions that agree: [2, 3] × [4, 4]");
  CHECK(mismatch_of("addmm", {{3}, {2, 3}, {3, 4}}) == "a bias that broadcasts to [2, 4]");
  CHECK(mismatch_of("addmm", {{5, 2, 4}, {2, 3}, {3, 4}}) == "a bias that broadcasts to [2, 4]");
  CHECK(mismatch_of("t", {{3}}) == "two dimensions or more");
  CHECK(mismatch_of("t", {{}}) == "two dimensions or more");
  CHECK(mismatch_of("cat", {{2, 3}, {3, 3}}) == "shapes that agree but in the last dimension");
  CHECK(mismatch_of("cat", {{2, 3}, {3}}) == "shapes that agree but in the last dimension");
  CHECK(mismatch_of("cat", {{}, {}}) == "shapes that agree but in the last dimension");
  CHECK(mismatch_of("embedding", {{100, 16}}) == "a weight of two dimensions and an index");
  CHECK(mismatch_of("embedding", {{100}, {2}}) == "a weight of two dimensions and an index");
}

TEST_CASE("every kind has a shape rule that takes its own inputs", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    const InferredShape inferred = infer_shape(kind, {{4, 4}, {4, 4}, {4, 4}});
    CHECK(inferred.mismatch == std::nullopt);
  }
}

TEST_CASE("a shape is shown as a list", "[model]") {
  CHECK(shown_shape({}) == "[]");
  CHECK(shown_shape({4}) == "[4]");
  CHECK(shown_shape({4, 8, 0}) == "[4, 8, 0]");
}

TEST_CASE("a matrix product costs two operations for each inner step, others one an element",
          "[model]") {
  const auto flops = [](std::string_view kind, const std::vector<Shape>& inputs,
                        const Shape& output) {
    return flops_of(*find_op_kind(kind), inputs, output);
  };
  CHECK(flops("mm", {{2, 3}, {3, 4}}, {2, 4}) == 48);             // 2·2·4·3
  CHECK(flops("bmm", {{5, 2, 3}, {5, 3, 4}}, {5, 2, 4}) == 240);  // 5 of those
  CHECK(flops("addmm", {{4}, {2, 3}, {3, 4}}, {2, 4}) == 48);     // the bias is left out
  CHECK(flops("mul", {{2, 4}, {2, 4}}, {2, 4}) == 8);
  CHECK(flops("sum", {{2, 4}}, {}) == 1);
  CHECK(flops("mm", {{}, {}}, {2, 4}) == 16);
  CHECK(flops("mm", {{INT64_MAX, 2}, {2, 2}}, {INT64_MAX / 2, 2}) == INT64_MAX);
}

TEST_CASE("a matrix product without inputs costs one operation an element", "[model]") {
  CHECK(flops_of(*find_op_kind("mm"), {}, {2, 4}) == 8);
  CHECK(flops_of(*find_op_kind("addmm"), {{4}}, {2, 4}) == 8);
}

}  // namespace remat
