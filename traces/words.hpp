#pragma once

#include <cstdint>

namespace remat {

// 64-bit integers as the 32-bit words that a trace keeps them in.

constexpr std::uint32_t low_word(std::int64_t value) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
}
constexpr std::uint32_t high_word(std::int64_t value) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32U);
}
constexpr std::int64_t joined(std::uint32_t low, std::uint32_t high) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(high) << 32U) | low);
}
constexpr std::int64_t sign_extended(std::uint32_t word) {
  return static_cast<std::int32_t>(word);
}

}  // namespace remat
