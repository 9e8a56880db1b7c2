#pragma once

#include <cstdint>
#include <string>

#include "cli/exit_code.hpp"

namespace remat {

struct SelfcheckOptions {
  std::string seed = "0";
  std::uint64_t cases = 20'000;
  std::string mutant;  // a planted fault, to see the check fail
  std::string output = "-";
  bool json = false;
};

/// Runs the same cases again in this process, with other numbers of jobs and in another process:
/// all must come to the same. Otherwise it names the first event that differs. Throws InputError.
ExitCode selfcheck_command(const SelfcheckOptions& options);

}  // namespace remat
