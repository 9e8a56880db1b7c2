#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace remat {

/// Something to tell a user of save units: of which model, unit and op.
struct Diagnosis {
  std::string code;
  std::string owner;
  std::string unit;
  std::string op;
  friend auto operator<=>(const Diagnosis&, const Diagnosis&) = default;
};

/// What the ranks of a run keep together: the next of each kind of number that a trace gives, so
/// that none is given twice, and what users have been told, which is told once (protocols.md A7).
struct RunBook {
  std::int64_t seq = 0;
  std::int64_t tensor = 0;
  std::int64_t storage = 0;
  std::int64_t frame = 0;
  std::int64_t plain_slot = 0;
  std::int64_t excluded_slot = 0;
  std::int64_t graph_task = 0;
  std::set<Diagnosis> told;
};

}  // namespace remat
