#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "properties/invariants/facts.hpp"

namespace remat {

// What the header's `expect` holds. A part of another form than docs/trace-format.md gives is a
// HeaderError.

/// What the header expects is not written as the format says: what is wrong and what was expected,
/// without the file.
class HeaderError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parameter → the values of its contributions in one step, as JSON text.
std::map<std::string, std::vector<std::string>> expected_gradients(const TraceHeader& header);

/// How often an op or effect runs in one step: `name` in all phases, `name:phase` in one.
struct ExpectedCount {
  std::string name;
  Phase phase = Phase::none;  // none: all of them together
  std::int64_t count = 0;
};
/// In the order of their keys.
std::vector<ExpectedCount> expected_op_counts(const TraceHeader& header);

std::optional<std::int64_t> expected_peak_bytes(const TraceHeader& header);
std::optional<std::int64_t> expected_resident_bytes(const TraceHeader& header);

}  // namespace remat
