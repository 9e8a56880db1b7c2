#include "model/tensor_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/random_bits.hpp"

namespace remat {
namespace {

constexpr std::uint64_t layout_stream = 0x6c61796f7574ULL;

std::uint64_t mixed_in(std::uint64_t bits, std::uint64_t word) {
  return mixed_bits(bits * 0x9e3779b97f4a7c15ULL + word + 1);
}

std::uint64_t mixed_in(std::uint64_t bits, std::span<const std::int64_t> numbers) {
  bits = mixed_in(bits, numbers.size());
  for (const std::int64_t number : numbers)
    bits = mixed_in(bits, static_cast<std::uint64_t>(number));
  return bits;
}

}  // namespace

Ring layout_constant(const TensorLayout& layout) {
  std::uint64_t bits = layout_stream;
  for (const char letter : layout.dtype)
    bits = mixed_in(bits, static_cast<unsigned char>(letter));
  bits = mixed_in(bits, layout.shape);
  bits = mixed_in(bits, layout.stride);
  bits = mixed_in(bits, static_cast<std::uint64_t>(layout.offset));
  return constant_of(bits);
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
  if (dtype == "f64" || dtype == "i64" || dtype == "c64") return 8;
  if (dtype == "bf16" || dtype == "f16" || dtype == "i16") return 2;
  if (dtype == "i8" || dtype == "u8" || dtype == "bool" || dtype.starts_with("f8")) return 1;
  return 4;
}

bool is_floating(std::string_view dtype) {
  return dtype.starts_with('f') || dtype.starts_with("bf") || dtype.starts_with('c');
}

}  // namespace remat
