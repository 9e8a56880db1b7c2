#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace remat {

/// What a check found, as data: which property fails, at which event that is certain, why, and what
/// proves it.
struct Finding {
  std::string invariant;
  std::int64_t seq = 0;
  std::string message;
  std::vector<std::int64_t> events;  // seq of the events that prove it, in order
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// A property that a trace could not be held against, and what the trace would have to record.
struct NotChecked {
  std::string invariant;
  std::string needs;
  friend bool operator==(const NotChecked&, const NotChecked&) = default;
};

}  // namespace remat
