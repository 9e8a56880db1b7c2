#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/exit_code.hpp"

namespace remat {

struct MutantsOptions {
  std::vector<std::string> names;  // only these; none: all
  std::string seed = "0";
  std::string budget = "60s";       // of all together
  std::uint64_t cases = 1'000'000;  // of each, at most
  std::string jobs = "1";
  std::string save;
  std::string output = "-";
  bool json = false;
  bool matrix = false;  // repeats over 30 seeds
};

/// Plants each fault and runs cases until the invariant that is meant names it. Throws InputError.
ExitCode mutants_command(const MutantsOptions& options);

}  // namespace remat
