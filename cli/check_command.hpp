#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.hpp"

namespace remat {

/// `rematsim check`.
struct CheckOptions {
  std::vector<std::string> traces;
  std::vector<std::string> invariants;  // all where empty
  bool list = false;
  bool summary = false;
  bool json = false;
  bool verbose = false;
  bool progress = false;
  std::string output = "-";
};

/// Runs the invariants over each trace and prints what was found. Throws InputError for bad usage;
/// a trace that cannot be read becomes a row with verdict `invalid`.
ExitCode check_command(const CheckOptions& options);

}  // namespace remat
