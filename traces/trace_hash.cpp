#include "traces/trace_hash.hpp"

#include <fmt/format.h>

#include "model/flat_map.hpp"
#include "traces/writer.hpp"

namespace remat {

void TraceHash::add(std::string_view bytes) {
  const auto mix = [this](std::uint64_t word) {
    lanes_[0] = mixed_bits((lanes_[0] ^ word) * 0x9e3779b97f4a7c15ULL);
    lanes_[1] = mixed_bits((lanes_[1] + word) * 0xc2b2ae3d27d4eb4fULL) ^ lanes_[0];
  };
  std::uint64_t word = 0;
  unsigned shift = 0;
  for (const char byte : bytes) {
    word |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
    if (shift < 64) continue;
    mix(word);
    word = 0;
    shift = 0;
  }
  mix(word);
  mix(bytes.size());
}

std::string TraceHash::digits() const {
  return fmt::format("{:016x}{:016x}", lanes_[0], lanes_[1]);
}

std::string trace_hash(const Trace& trace) {
  TraceHash hash;
  std::string line;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    line.clear();
    append_json(trace[i], line);
    hash.add(line);
  }
  return hash.digits();
}

}  // namespace remat
