#include "schedules/save_units.hpp"

#include <algorithm>

namespace remat {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

UnitPolicy::UnitPolicy(const UnitConfig& config, const UnitRules& rules)
    : config_(config), rules_(rules) {
  if (!rules_.ends_where_it_starts) return;
  for (SaveUnit& unit : config_.units) {
    for (SaveUnit::Interval& interval : unit.intervals)
      interval.second = interval.first;
  }
}

bool UnitPolicy::is_selected(std::string_view owner, std::size_t unit) const {
  const auto own = config_.sub_models.find(owner);
  const UnitSelection& selection =
      own == config_.sub_models.end() ? config_.selection : own->second;
  return selection.all || contains(selection.names, config_.units[unit].name);
}

bool UnitPolicy::selects_any(std::string_view owner) const {
  for (std::size_t unit = 0; unit < config_.units.size(); ++unit)
    if (is_selected(owner, unit)) return true;
  return false;
}

bool UnitPolicy::keeps_any(std::string_view owner) const {
  return config_.keeps_any.value_or(true) && selects_any(owner);
}

void UnitPolicy::pass(std::string_view marker, UnitState& state) const {
  for (std::size_t unit = 0; unit < config_.units.size(); ++unit) {
    const std::vector<SaveUnit::Interval>& intervals = config_.units[unit].intervals;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const UnitState::Interval interval = {unit, i};
      const auto found = std::find(state.open.begin(), state.open.end(), interval);
      if (marker == intervals[i].first) {
        if (found == state.open.end()) state.open.push_back(interval);
      } else if (marker == intervals[i].second && found != state.open.end()) {
        if (rules_.ends_one_op_late) state.closing.push_back(interval);
        state.open.erase(found);
      }
    }
  }
}

std::vector<std::size_t> UnitPolicy::asking(std::string_view owner, std::string_view op,
                                            const UnitState& state) const {
  std::vector<std::size_t> asking;
  if (!keeps_any(owner)) return asking;
  for (std::size_t unit = 0; unit < config_.units.size(); ++unit) {
    if (!is_selected(owner, unit)) continue;
    const SaveUnit& asked = config_.units[unit];
    const bool runs =
        std::any_of(state.callables.begin(), state.callables.end(),
                    [&](std::string_view name) { return contains(asked.callables, name); });
    const auto is_its = [&](const UnitState::Interval& interval) { return interval.first == unit; };
    const bool is_open = std::any_of(state.open.begin(), state.open.end(), is_its) ||
                         std::any_of(state.closing.begin(), state.closing.end(), is_its);
    if (runs || is_open || contains(asked.ops, op)) asking.push_back(unit);
  }
  return asking;
}

}  // namespace remat
