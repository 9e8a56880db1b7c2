#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "properties/case_runner.hpp"
#include "properties/program_generator.hpp"

namespace remat {

/// What should happen in some case of every campaign: a check that never had anything to look at
/// has shown nothing.
enum class Sometimes : std::uint8_t {
  replayed,            // a region was replayed
  cut_short,           // early stop ended a replay
  replayed_whole,      // a replay ran to its end
  replayed_twice,      // two graph tasks replayed one frame
  nested_replay,       // a replay asked for the replay of the region around it
  dead_holder,         // a replay came to a slot that nobody reads any more
  served,              // a selective policy's cache served an op
  kept_draw_served,    // … and the generator was put to where it would have been
  written_in_replay,   // a replay wrote in place
  drawn_in_replay,     // a replay drew random numbers
  effect_in_replay,    // a replay repeated an effect
  raised,              // an exception left the run
  gradients_summed,    // two gradients met
  microbatches_mixed,  // a forward stood between another one and its backward
  group_asked,         // an exec group was the session
  counts_told,         // op counts were expected
  bytes_told,          // a bound on bytes was expected
  caught,              // the training loop caught an exception
  offloaded,           // what a group kept left the device and came back
  exchanged_in_replay  // a replay issued a collective
};
inline constexpr std::size_t sometimes_count = 20;
std::string_view name_of(Sometimes sometimes);

/// What a campaign has seen. Sums over cases, so that parts can be added in any order.
class Coverage {
 public:
  using Cell = std::tuple<std::string, std::string, std::string>;  // protocol, code, invariant

  /// The cells that the case is the first of in here.
  std::vector<Cell> observe(const GeneratedCase& generated, const CaseOutcome& outcome,
                            const Trace& trace);
  void add(const Coverage& other);

  std::uint64_t n_cases() const { return n_cases_; }
  /// Cases by protocol, the code of the error that they ended in (`none`) and an invariant that had
  /// something to say (`none`).
  const std::map<Cell, std::uint64_t>& cells() const { return cells_; }
  std::uint64_t with(Feature feature) const { return features_[static_cast<std::size_t>(feature)]; }
  std::uint64_t with(Strategy strategy) const {
    return strategies_[static_cast<std::size_t>(strategy)];
  }
  std::uint64_t with(Sometimes sometimes) const {
    return sometimes_[static_cast<std::size_t>(sometimes)];
  }
  std::map<std::string, std::uint64_t> op_kinds() const;  // cases that hold one
  std::map<std::string, std::uint64_t> edits() const;
  std::map<std::string, std::uint64_t> codes() const;

 private:
  void observe_program(const Program& program);
  struct Seen;
  void observe_events(const GeneratedCase& generated, const Trace& trace);
  void observe_run(const EventView& event, Seen& seen);
  void observe_slot(const EventView& event, Seen& seen);
  void note(Sometimes sometimes) { noted_[static_cast<std::size_t>(sometimes)] = true; }

  std::uint64_t n_cases_ = 0;
  std::map<Cell, std::uint64_t> cells_;
  std::map<std::string, std::uint64_t> codes_;  // of cases that ended in an error
  std::array<std::uint64_t, feature_count> features_{};
  std::array<std::uint64_t, strategy_count> strategies_{};
  std::array<std::uint64_t, sometimes_count> sometimes_{};
  std::array<bool, sometimes_count> noted_{};  // of the case that is looked at
  std::vector<std::uint64_t> op_kinds_;        // by place in the table of kinds
  std::vector<std::uint64_t> edits_;           // by place in the table of edits
};

/// What a campaign of so many cases must have seen, and has not: one line each. All limits are
/// counts, none is a time. Nothing is asked of campaigns of fewer than 10,000 cases.
std::vector<std::string> health_complaints(const Coverage& coverage);

}  // namespace remat
