#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "model/flat_map.hpp"

namespace remat {

// Names and keys are short and looked up dozens of times an event: a few loads instead of a loop.

/// Eight bytes at `from`, as the machine orders them: for comparing and hashing in memory only.
inline std::uint64_t eight_bytes(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}
inline std::uint64_t four_bytes(const char* from) {
  std::uint32_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

/// All bytes of a text of at most eight.
inline std::uint64_t packed_bytes(std::string_view text) {
  const std::size_t size = text.size();
  const char* const data = text.data();
  if (size == 8) return eight_bytes(data);
  if (size >= 4) return four_bytes(data) | (four_bytes(data + size - 4) << 32U);
  if (size == 0) return 0;
  const auto at = [data](std::size_t i) {
    return std::uint64_t{static_cast<unsigned char>(data[i])};
  };
  return at(0) | (at(size / 2) << 8U) | (at(size - 1) << 16U);
}

/// A hash for tables in memory: never written, never part of an order.
inline std::uint64_t text_bits(std::string_view text) {
  std::uint64_t bits = text.size() * 0x9e3779b97f4a7c15ULL;
  while (text.size() > 8) {
    bits = (bits ^ eight_bytes(text.data())) * 0x9e3779b97f4a7c15ULL;
    bits ^= bits >> 32U;
    text.remove_prefix(text.size() >= 16 ? 8 : text.size() - 8);
  }
  return mixed_bits(bits ^ packed_bytes(text));
}

inline bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() <= 8) return packed_bytes(a) == packed_bytes(b);
  if (a.size() > 16) return std::memcmp(a.data(), b.data(), a.size()) == 0;
  const std::size_t last = a.size() - 8;
  return eight_bytes(a.data()) == eight_bytes(b.data()) &&
         eight_bytes(a.data() + last) == eight_bytes(b.data() + last);
}

}  // namespace remat
