#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace remat {

/// What a trace's header says that is to be expected of it (docs/trace-format.md, `expect`).
struct Expectation {
  std::vector<std::pair<std::string, std::int64_t>> op_counts;  // in each step
  std::optional<std::int64_t> peak_bytes;
  std::optional<std::int64_t> resident_bytes;
};

}  // namespace remat
