#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_code.hpp"

namespace remat {

struct SimulateOptions {
  std::string scenario;
  std::optional<std::string> protocol;  // instead of the scenario's own
  std::string trace;                    // where the trace goes; empty: nowhere
  std::string output = "-";
  bool json = false;
  std::uint64_t events_max = UINT64_MAX;
};

/// Runs a scenario, holds its trace against every invariant, and prints time, bytes and counts.
/// Throws InputError.
ExitCode simulate_command(const SimulateOptions& options);

}  // namespace remat
