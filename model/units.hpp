#pragma once

#include <compare>
#include <cstdint>

namespace remat {

/// The sum of two counts, neither negative; one that no machine can hold stays at the largest.
constexpr std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/// Simulated time is in integer nanoseconds, so that no order ever depends on rounding.
struct Duration {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
};

struct Instant {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
};

struct Bytes {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
};

/// Holds every sum of 64-bit counts that a program can come to.
__extension__ using WideInteger = __int128;

/// The number, or the largest one where it does not fit; it is not below zero.
constexpr std::int64_t saturated(WideInteger number) {
  return number > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(number);
}

/// How many bytes are alive: exact while storages come and go, whatever they claim to hold. More
/// than fit into 64 bits are told as the largest number.
class ByteTotal {
 public:
  void add(std::int64_t bytes) { total_ += bytes; }
  void subtract(std::int64_t bytes) { total_ -= bytes; }
  std::int64_t count() const { return saturated(total_); }

 private:
  WideInteger total_ = 0;
};

}  // namespace remat
