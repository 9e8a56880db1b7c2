#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.hpp"

namespace remat {

struct PredictOptions {
  std::vector<std::string> traces;
  std::string trace;  // where the simulator's own trace goes; empty: nowhere
  std::string output = "-";
  bool list = false;
  bool json = false;
};

/// From the forward part of each recording, foresees replay and backward, and compares with what
/// was recorded. Throws InputError.
ExitCode predict_command(const PredictOptions& options);

}  // namespace remat
