#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/diff.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What came out of one recording.
struct Prediction {
  std::string file;
  std::string protocol;
  std::vector<std::string> predicted;
  std::optional<bool> match;  // none: the recording ends with its forwards
  std::optional<FirstDifference> difference;
  std::optional<std::string> unsupported;  // why nothing is predicted
  std::optional<std::string> unreadable;   // why it could not be read
};

/// Rebuilds the recording's forwards as a program, simulates it, and compares. The simulator's own
/// trace goes to `simulated`.
Prediction predicted_from(const Trace& recording, Trace& simulated);

/// One JSON object, as docs/cli.md promises it.
std::string prediction_json(const std::vector<Prediction>& predictions, bool list);
/// A table of the files, then where a prediction differs.
std::string prediction_text(const std::vector<Prediction>& predictions, bool list, bool colours);

}  // namespace remat
