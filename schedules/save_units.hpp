#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remat {

/// A name by which a user asks for outputs to be kept, and what it stands for in a model: ops,
/// callables, or what runs between two markers (protocols.md P8, P9).
struct SaveUnit {
  using Interval = std::pair<std::string, std::string>;  // markers: first and last
  std::string name;
  std::vector<std::string> ops;
  std::vector<std::string> unknown_ops;  // asked for, and registered nowhere: skipped
  std::vector<std::string> callables;
  std::vector<Interval> intervals;

  /// It stands for nothing.
  bool is_inert() const { return ops.empty() && callables.empty() && intervals.empty(); }
};

/// Which units are asked for: none without a word, all, or those that are named.
struct UnitSelection {
  bool all = false;
  std::vector<std::string> names = {};
};

/// What a user says of save units.
struct UnitConfig {
  std::vector<SaveUnit> units;
  UnitSelection selection;
  /// Of models within the model, where they say otherwise; by owner.
  std::map<std::string, UnitSelection, std::less<>> sub_models;
  /// False: no op is kept, whatever is selected. Without a word, where something is selected.
  std::optional<bool> keeps_any;
  /// Regions of an owner for which nothing is kept are reentrant.
  bool reentrant_without_units = false;
};

/// What is in force where code runs: callables that have been entered, and intervals that a marker
/// has opened.
struct UnitState {
  std::vector<std::string_view> callables;               // innermost last
  using Interval = std::pair<std::size_t, std::size_t>;  // unit, and which of its intervals
  std::vector<Interval> open;
  std::vector<Interval> closing;  // of UnitRules::ends_one_op_late
};

/// How a policy finds what belongs to a unit.
struct UnitRules {
  bool sees_compiled = true;      // ops within a compiled stretch
  bool refuses_writes = false;    // an op that writes in place, where it would be kept, is an error
  bool ends_one_op_late = false;  // M50: an interval takes in the op behind its end
  bool ends_where_it_starts = false;  // M32: of each interval the first marker is the last too
};

/// Which ops are to be kept: pure answers about one configuration.
class UnitPolicy {
 public:
  UnitPolicy(const UnitConfig& config, const UnitRules& rules);

  const UnitRules& rules() const { return rules_; }
  const std::vector<SaveUnit>& units() const { return config_.units; }
  bool is_selected(std::string_view owner, std::size_t unit) const;
  /// Some unit is selected.
  bool selects_any(std::string_view owner) const;
  /// A region of the owner has a policy at all.
  bool keeps_any(std::string_view owner) const;
  bool is_reentrant(std::string_view owner) const {
    return config_.reentrant_without_units && !keeps_any(owner);
  }
  /// A marker is passed. Intervals are half open, and know nothing of one another.
  void pass(std::string_view marker, UnitState& state) const;
  /// The units that ask for the op to be kept, by their places.
  std::vector<std::size_t> asking(std::string_view owner, std::string_view op,
                                  const UnitState& state) const;

 private:
  UnitConfig config_;
  UnitRules rules_;
};

}  // namespace remat
