#pragma once

#include <string>
#include <vector>

namespace remat {

/// Runs this very program once more, in a process of its own, with these words; what it printed.
/// Its exit status must be 0 or 1. Throws InputError where it cannot be run.
std::string output_of_this_program(const std::vector<std::string>& words);

}  // namespace remat
