#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace remat {

/// 128 bits over the bytes of a trace as it is written: equal traces have equal hashes on every
/// machine. Two lanes of multiply-and-mix over eight bytes at a time; not meant against an enemy.
class TraceHash {
 public:
  void add(std::string_view bytes);
  /// 32 hexadecimal digits.
  std::string digits() const;

 private:
  std::array<std::uint64_t, 2> lanes_ = {0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL};
};

std::string trace_hash(const Trace& trace);

}  // namespace remat
