#pragma once

#include <nlohmann/json.hpp>

#include "traces/summary.hpp"

namespace remat {

/// The object that `summary_json` prints, to be placed in a larger one. Bytes are null, and lists
/// of bytes empty, where the trace does not tell of storages.
nlohmann::ordered_json to_json(const TraceSummary& summary);

}  // namespace remat
