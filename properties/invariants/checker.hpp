#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/invariants/registry.hpp"
#include "traces/finding.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What a trace was found to be.
struct Verdict {
  std::int64_t n_events = 0;
  std::vector<Finding> findings;  // by (seq, place of the invariant)
  std::vector<NotChecked> not_checked;
  std::int64_t n_left_out = 0;  // findings past the most that are kept

  bool holds() const { return findings.empty(); }
};

/// Runs invariants over a trace as it comes, keeping only what is alive.
class Checker {
 public:
  /// Tells what the named invariants find; what all of them find where none is named. All run in
  /// any case: some are silent about what another has told (R1). Every name must be known.
  explicit Checker(std::span<const std::string> names = {});

  /// The events of one trace in order. Throws HeaderError where the header expects what the format
  /// does not know.
  void observe(const EventView& event);
  Verdict finish();
  /// The trace goes on, but nobody reads it: what is certain so far, and nothing that waits for
  /// more.
  Verdict stop();

 private:
  struct Running {
    std::string_view name;
    std::unique_ptr<Invariant> invariant;
  };

  bool is_asked_for(std::string_view invariant) const;

  std::vector<std::string> names_;
  Facts facts_;
  Report report_;
  std::vector<Running> running_;
  std::int64_t n_events_ = 0;
};

/// The verdict on a whole trace in memory.
Verdict check(const Trace& trace, std::span<const std::string> names = {});

}  // namespace remat
