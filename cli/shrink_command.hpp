#pragma once

#include <string>

#include "cli/exit_code.hpp"

namespace remat {

struct ShrinkCommandOptions {
  std::string fuzz_case;  // a token, or a file that holds one
  std::string mutant;
  std::string save;
  std::string output = "-";
  bool json = false;
};

/// Makes a failing case smaller. A case that holds is told, and is no failure. Throws InputError.
ExitCode shrink_command(const ShrinkCommandOptions& options);

}  // namespace remat
