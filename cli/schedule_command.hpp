#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_code.hpp"

namespace remat {

struct ScheduleOptions {
  std::string source;  // a schedule's name, or a file of lists; - is standard input
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> microbatches;
  std::optional<std::int64_t> chunks;
  std::optional<std::int64_t> slices;
  std::string costs_file;  // read first; `cost` is said of what it leaves out or changes
  std::string cost;
  std::string replay = "none";
  std::optional<std::int64_t> distance;
  std::string channel = "async";
  std::string lowering;          // empty: none, or naive where the channel needs messages
  std::string memory_limit;      // activations, up to two decimals; empty: none
  std::int64_t freed_at_dx = 0;  // percent
  std::string output = "-";
  bool list = false;
  bool csv = false;
  bool json = false;
};

/// Runs a pipeline schedule, and prints its makespan, bubble and peaks, or why it never finishes.
/// Throws InputError.
ExitCode schedule_command(const ScheduleOptions& options);

}  // namespace remat
