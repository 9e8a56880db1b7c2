#pragma once

#include <cstdint>

#include "model/flat_map.hpp"

namespace remat {

/// 64 random bits as a pure function of (seed, stream, counter): drawing more in one place never
/// shifts another. SplitMix64's finaliser over the three words.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                    std::uint64_t counter) {
  constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;
  return mixed_bits(mixed_bits(mixed_bits(seed + golden_gamma) ^ (stream + golden_gamma)) +
                    counter * golden_gamma);
}

}  // namespace remat
