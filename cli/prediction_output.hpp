#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction.hpp"

namespace remat {

/// What came out of one file.
struct PredictedFile : Prediction {
  std::string file;
  std::optional<std::string> unreadable;  // why it could not be read
};

/// One JSON object, as docs/cli.md promises it.
std::string prediction_json(const std::vector<PredictedFile>& predictions, bool list);
/// A table of the files, then where a prediction differs.
std::string prediction_text(const std::vector<PredictedFile>& predictions, bool list, bool colours);

}  // namespace remat
