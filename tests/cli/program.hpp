#pragma once

#include <string>
#include <vector>

namespace remat {

/// What a run of the program left behind.
struct ProgramRun {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs `rematsim` with these words, standard input as given, no terminal anywhere.
ProgramRun rematsim(const std::vector<std::string>& words, const std::string& input = "");

}  // namespace remat
