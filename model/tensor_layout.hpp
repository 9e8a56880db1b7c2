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

/// Likewise the constant of what a view shows of the holes that another layout leaves.
Ring hole_constant(const TensorLayout& layout);

/// The elements of the layout do not fill the stretch from its first to its last: there are holes.
bool has_holes(const TensorLayout& layout);
/// The view shows an element that the base does not. Exact up to 65,536 elements; above that, true
/// unless shape and strides agree.
bool reaches_outside(const TensorLayout& view, const TensorLayout& base);

/// Row-major strides of a shape without holes.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);
/// Number of elements; a scalar has one. Saturates at the largest number.
std::int64_t element_count(const std::vector<std::int64_t>& shape);
/// Elements from the first to the last that the layout shows, holes included. Saturates likewise.
std::int64_t spanned_elements(const TensorLayout& layout);
/// Bytes that the layout spans, and those of its elements alone; both saturate.
std::int64_t spanned_bytes(const TensorLayout& layout);
std::int64_t element_bytes_of(const TensorLayout& layout);
/// Its bytes are not to be counted in 64 bits.
inline bool is_larger_than_memory(const TensorLayout& layout) {
  return spanned_bytes(layout) == INT64_MAX;
}
/// Bytes of one element: f32 and its like by their width, 4 where the name is not known.
std::int64_t element_bytes(std::string_view dtype);
/// The names whose width is known.
std::vector<std::string> known_dtypes();
/// Gradients exist for floating dtypes only.
bool is_floating(std::string_view dtype);

}  // namespace remat
