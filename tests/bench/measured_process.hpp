#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace remat {

/// What a finished process took, by the operating system's own account.
struct ProcessCost {
  std::int64_t cpu_us = 0;  // user and system time
  std::int64_t wall_us = 0;
  std::int64_t peak_bytes = 0;
  int exit_code = 0;
};

/// Runs the program with its output thrown away. Throws std::runtime_error where it cannot be
/// started.
ProcessCost measured_process(const std::vector<std::string>& command);

}  // namespace remat
