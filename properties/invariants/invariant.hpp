#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/invariants/facts.hpp"
#include "traces/finding.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Where invariants put what they find and what they could not look at.
class Report {
 public:
  void found(std::string_view invariant, std::int64_t seq, std::string message,
             std::vector<std::int64_t> events);
  void not_checked(std::string_view invariant, std::string needs);
  /// Was anything found at or behind that event?
  bool found_since(std::int64_t seq) const { return last_found_seq_ && *last_found_seq_ >= seq; }
  /// Did that invariant find anything at or behind that event?
  bool found_since(std::string_view invariant, std::int64_t seq) const;

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<NotChecked>& unchecked() const { return unchecked_; }
  /// How many of the invariant's findings are past the most that are kept.
  std::int64_t n_left_out(std::string_view invariant) const;

 private:
  /// Of one invariant: a long run can break the same rule at every step, and a person reads the
  /// first few.
  static constexpr std::int64_t findings_max = 10000;

  /// What one invariant has found.
  struct Tally {
    std::int64_t n_found = 0;
    std::int64_t last_seq = 0;  // the largest
  };

  std::vector<Finding> findings_;
  std::vector<NotChecked> unchecked_;
  std::map<std::string, Tally, std::less<>> tallies_;  // by invariant
  std::optional<std::int64_t> last_found_seq_;
};

/// One property of a run, judged event by event from the trace alone. It calls nothing that it
/// could judge.
class Invariant {
 public:
  Invariant() = default;
  Invariant(const Invariant&) = delete;
  Invariant& operator=(const Invariant&) = delete;
  virtual ~Invariant() = default;

  /// `facts` speak of the state just before the event, and of what the event amounts to.
  virtual void observe(const EventView& event, const Facts& facts, Report& report) = 0;
  /// The trace is over: what was waiting for more events is due, and what could not be looked at is
  /// said.
  virtual void finish(const Facts& facts, Report& report) = 0;
};

}  // namespace remat
