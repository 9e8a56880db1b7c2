#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/ring.hpp"

namespace remat {

/// How a tensor lies in its storage. Strides and the offset are in elements; the offset counts from
/// where the op that allocated the storage put its output.
struct TensorLayout {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
  std::int64_t offset = 0;
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

/// The non-zero constant that a storage's element is multiplied with to give the value of a tensor
/// of this layout (architecture.md "Exact"): a pure function of the layout.
Ring layout_constant(const TensorLayout& layout);

/// Row-major strides of a shape without holes.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);
/// Number of elements; a scalar has one. Saturates at the largest number.
std::int64_t element_count(const std::vector<std::int64_t>& shape);
/// Bytes of one element: f32 and its like by their width, 4 where the name is not known.
std::int64_t element_bytes(std::string_view dtype);
/// Gradients exist for floating dtypes only.
bool is_floating(std::string_view dtype);

}  // namespace remat
