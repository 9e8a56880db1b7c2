#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/units.hpp"

namespace remat {

/// Where offloaded bytes wait, beside the device.
enum class MemoryLevel : std::uint8_t { host, disk };
inline constexpr std::size_t memory_level_count = 2;
inline constexpr std::array<std::string_view, memory_level_count> memory_level_names = {"host",
                                                                                        "disk"};
inline std::string_view name_of(MemoryLevel level) {
  return memory_level_names[static_cast<std::size_t>(level)];
}

/// How fast one direction of the link to a level is: one copy at a time, whatever the other
/// direction does.
struct LinkRate {
  std::int64_t bytes_per_second = 0;  // 0: a copy takes no longer than the latency
  Duration latency;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};
/// What a copy of so many bytes takes, rounded up to a nanosecond.
inline Duration copy_time(std::int64_t bytes, const LinkRate& rate) {
  if (rate.bytes_per_second == 0) return rate.latency;
  const WideInteger scaled = static_cast<WideInteger>(bytes) * 1'000'000'000;
  const WideInteger ns = (scaled + rate.bytes_per_second - 1) / rate.bytes_per_second;
  return {saturated(ns + rate.latency.ns)};
}

/// By level.
using LinkRates = std::array<LinkRate, memory_level_count>;

}  // namespace remat
