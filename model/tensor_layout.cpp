#include "model/tensor_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/random_bits.hpp"

namespace remat {
namespace {

constexpr std::uint64_t layout_stream = 0x6c61796f7574ULL;
constexpr std::uint64_t hole_stream = 0x686f6c65ULL;
constexpr std::int64_t enumerated_max = 65536;

/// A type of elements, and the bytes of one.
struct DtypeRow {
  std::string_view name;
  std::int64_t bytes;
};
constexpr DtypeRow dtypes[] = {{"f64", 8},    {"f32", 4},    {"bf16", 2}, {"f16", 2}, {"f8", 1},
                               {"f8e4m3", 1}, {"f8e5m2", 1}, {"c64", 8},  {"i64", 8}, {"i32", 4},
                               {"i16", 2},    {"i8", 1},     {"u8", 1},   {"bool", 1}};

std::uint64_t mixed_in(std::uint64_t bits, std::uint64_t word) {
  return mixed_bits(bits * 0x9e3779b97f4a7c15ULL + word + 1);
}

std::uint64_t mixed_in(std::uint64_t bits, std::span<const std::int64_t> numbers) {
  bits = mixed_in(bits, numbers.size());
  for (const std::int64_t number : numbers)
    bits = mixed_in(bits, static_cast<std::uint64_t>(number));
  return bits;
}

std::uint64_t layout_bits(std::uint64_t stream, const TensorLayout& layout) {
  std::uint64_t bits = stream;
  for (const char letter : layout.dtype)
    bits = mixed_in(bits, static_cast<unsigned char>(letter));
  bits = mixed_in(bits, layout.shape);
  bits = mixed_in(bits, layout.stride);
  return mixed_in(bits, static_cast<std::uint64_t>(layout.offset));
}

/// Where the elements of a layout lie, in order, each once.
std::vector<std::int64_t> places(const TensorLayout& layout) {
  std::vector<std::int64_t> all = {layout.offset};
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const std::int64_t stride = d < layout.stride.size() ? layout.stride[d] : 0;
    std::vector<std::int64_t> next;
    next.reserve(all.size() * static_cast<std::size_t>(std::max<std::int64_t>(layout.shape[d], 0)));
    for (const std::int64_t place : all) {
      for (std::int64_t i = 0; i < layout.shape[d]; ++i)
        next.push_back(place + i * stride);
    }
    all = std::move(next);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

Ring layout_constant(const TensorLayout& layout) {
  return constant_of(layout_bits(layout_stream, layout));
}

Ring hole_constant(const TensorLayout& layout) {
  return constant_of(layout_bits(hole_stream, layout));
}

std::int64_t spanned_elements(const TensorLayout& layout) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < layout.shape.size() && d < layout.stride.size(); ++d) {
    std::int64_t reach = 0;
    if (layout.shape[d] == 0) return 0;
    if (__builtin_mul_overflow(layout.shape[d] - 1, layout.stride[d], &reach) ||
        __builtin_add_overflow(n, reach, &n))
      return INT64_MAX;
  }
  return n;
}

bool has_holes(const TensorLayout& layout) {
  return spanned_elements(layout) > element_count(layout.shape);
}

bool reaches_outside(const TensorLayout& view, const TensorLayout& base) {
  if (view.shape == base.shape && view.stride == base.stride && view.offset == base.offset)
    return false;
  if (element_count(view.shape) > enumerated_max || element_count(base.shape) > enumerated_max)
    return true;
  const std::vector<std::int64_t> shown = places(view);
  const std::vector<std::int64_t> held = places(base);
  return !std::includes(held.begin(), held.end(), shown.begin(), shown.end());
}

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    const std::int64_t extent = std::max<std::int64_t>(shape[i], 1);
    if (__builtin_mul_overflow(stride[i], extent, &stride[i - 1])) stride[i - 1] = INT64_MAX;
  }
  return stride;
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return INT64_MAX;
  }
  return count;
}

std::int64_t element_bytes(std::string_view dtype) {
  for (const DtypeRow& row : dtypes)
    if (row.name == dtype) return row.bytes;
  return dtype.starts_with("f8") ? 1 : 4;
}

std::vector<std::string> known_dtypes() {
  std::vector<std::string> names;
  for (const DtypeRow& row : dtypes)
    names.emplace_back(row.name);
  return names;
}

std::int64_t spanned_bytes(const TensorLayout& layout) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(spanned_elements(layout), element_bytes(layout.dtype), &bytes)
             ? INT64_MAX
             : bytes;
}

std::int64_t element_bytes_of(const TensorLayout& layout) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(element_count(layout.shape), element_bytes(layout.dtype), &bytes)
             ? INT64_MAX
             : bytes;
}

bool is_floating(std::string_view dtype) {
  return dtype.starts_with('f') || dtype.starts_with("bf") || dtype.starts_with('c');
}

}  // namespace remat
