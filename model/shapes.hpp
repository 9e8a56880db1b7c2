#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/op_kinds.hpp"

namespace remat {

using Shape = std::vector<std::int64_t>;

/// The shape of an op's first output, or why the inputs' shapes do not go together.
struct InferredShape {
  Shape shape;
  std::optional<std::string> mismatch;
};
InferredShape infer_shape(const OpKind& kind, const std::vector<Shape>& inputs);

/// The shape of an output beside the first, whose shape is `first`.
Shape shape_beside(Beside beside, const Shape& first);

/// "[4, 8]"
std::string shown_shape(const Shape& shape);

/// Floating-point operations of one call: 2·m·n·k for products of matrices, one an element else.
std::int64_t flops_of(const OpKind& kind, const std::vector<Shape>& inputs, const Shape& output);

}  // namespace remat
