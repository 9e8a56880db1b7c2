#pragma once

namespace remat {

/// What the program's exit status says (docs and scripts rely on the numbers).
enum class ExitCode : int {
  fine = 0,
  found = 1,      // a violation or a mismatch
  bad_input = 2,  // or bad usage
  internal = 3,   // our own fault
  interrupted = 130
};

/// Several inputs give one status: bad input wins over a finding, an interrupt over both.
constexpr ExitCode worse(ExitCode a, ExitCode b) {
  return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

}  // namespace remat
