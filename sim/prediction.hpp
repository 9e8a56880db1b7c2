#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/diff.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What the simulator foresees of one recording.
struct Prediction {
  std::string protocol;
  std::vector<std::string> predicted;
  std::optional<bool> match;  // none: the recording ends with its forwards
  std::optional<FirstDifference> difference;
  std::optional<std::string> unsupported;   // why nothing is predicted
  std::optional<std::string> not_compared;  // why the recording cannot be held against it
};

/// Rebuilds the recording's forwards as a program, runs it as torch would, and compares with what
/// was recorded. The simulator's own trace goes to `simulated`.
Prediction predicted_from(const Trace& recording, Trace& simulated);

}  // namespace remat
