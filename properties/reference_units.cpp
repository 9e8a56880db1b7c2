#include "properties/reference_units.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "properties/reference_layers.hpp"
#include "properties/reference_wrappers.hpp"

namespace remat {
namespace {

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::count(list.begin(), list.end(), name) != 0;
}

/// Goes through the forward with what is in force.
class UnitWalk {
 public:
  UnitWalk(const Scenario& scenario, const Program& program, ReferenceUnits& found)
      : scenario_(&scenario),
        program_(&program),
        config_(&scenario.options.units),
        found_(&found),
        plain_layers_(reference_plain_layers(scenario, program)) {}

  void walk() { run(0, statements().size(), nullptr); }

 private:
  struct Frame {
    std::string owner;
    std::set<std::pair<std::string, SaveUnit::Interval>> open;  // by the unit's name
  };

  const std::vector<Statement>& statements() const { return statements_of(*program_); }

  bool selects(const std::string& owner, const SaveUnit& unit) const {
    const auto own = config_->sub_models.find(owner);
    const UnitSelection& selection =
        own != config_->sub_models.end() ? own->second : config_->selection;
    return selection.all || names(selection.names, unit.name);
  }
  bool keeps_any(const std::string& owner) const {
    const auto is_selected = [&](const SaveUnit& unit) { return selects(owner, unit); };
    return config_->keeps_any != false &&
           std::any_of(config_->units.begin(), config_->units.end(), is_selected);
  }

  bool is_asked(const Frame& frame, const SaveUnit& unit, const std::string& op) const {
    if (!selects(frame.owner, unit)) return false;
    for (const std::string& running : callables_)
      if (names(unit.callables, running)) return true;
    for (const SaveUnit::Interval& interval : unit.intervals)
      if (frame.open.contains({unit.name, interval})) return true;
    return names(unit.ops, op);
  }

  void meet_op(std::size_t at, const OpStatement& op, const Frame& frame) {
    const bool is_hidden = is_compiled_ && scenario_->protocol != "kept-ops";
    const bool is_mutating = op.writes || op.kind->name == "record_stream";
    if (is_mutating || op.kind->name == "detach" || is_hidden || !keeps_any(frame.owner)) return;
    if (op.group && !scenario_->options.keep_collectives.value_or(false)) return;
    const std::string name(op.kind->name);
    for (const SaveUnit& unit : config_->units)
      if (is_asked(frame, unit, name)) found_->kept.insert(at);
  }

  void meet_mark(const std::string& marker, Frame& frame) const {
    for (const SaveUnit& unit : config_->units) {
      for (const SaveUnit::Interval& interval : unit.intervals) {
        if (marker == interval.first) {
          frame.open.insert({unit.name, interval});
        } else if (marker == interval.second) {
          frame.open.erase({unit.name, interval});
        }
      }
    }
  }

  /// False where something was raised that a catch around it stops.
  bool run(std::size_t begin, std::size_t end, Frame* frame) {
    for (std::size_t at = begin; at < end; ++at) {
      const Statement& statement = statements()[at];
      if (const auto* op = std::get_if<OpStatement>(&statement)) {
        if (frame != nullptr) meet_op(at, *op, *frame);
      } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
        if (!run_region(at, *region, frame)) return false;
        at = region->end;
      } else if (const auto* mark = std::get_if<Mark>(&statement)) {
        if (frame != nullptr && !is_compiled_) meet_mark(mark->name, *frame);
      } else if (const auto* compiled = std::get_if<CompiledBegin>(&statement)) {
        if (!run_with(is_compiled_, true, at + 1, compiled->end, frame)) return false;
        at = compiled->end - 1;
      } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
        if (!run_with(has_grad_, false, at + 1, off->end, frame)) return false;
        at = off->end - 1;
      } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
        if (branch->in_replay) at = branch->end - 1;
      } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
        ++n_catches_;
        run(at + 1, caught->end, frame);
        --n_catches_;
        at = caught->end - 1;
      } else if (const auto* raise = std::get_if<Raise>(&statement)) {
        if (n_catches_ > 0 && raises_in(*raise, false)) return false;
      }
    }
    return true;
  }

  /// The same while `state` has another value.
  bool run_with(bool& state, bool value, std::size_t begin, std::size_t end, Frame* frame) {
    const bool outer = std::exchange(state, value);
    const bool goes_on = run(begin, end, frame);
    state = outer;
    return goes_on;
  }

  bool run_region(std::size_t at, const RegionBegin& region, Frame* frame) {
    const bool is_plain = !has_grad_ || plain_layers_.contains(region.end);
    if (region.kind == RegionKind::checkpointed && !is_plain) {
      const bool keeps_nothing = !keeps_any(region.owner);
      if (keeps_nothing) found_->without_any.insert(region.owner);
      // A reentrant region has no policy of its own: it is code of the region around it.
      if (region.reentrant || (keeps_nothing && config_->reentrant_without_units))
        return run(at + 1, region.end, frame);
      Frame own;
      own.owner = region.owner;
      return run(at + 1, region.end, &own);
    }
    callables_.push_back(region.name);
    const bool goes_on = run(at + 1, region.end, frame);
    callables_.pop_back();
    return goes_on;
  }

  const Scenario* scenario_;
  const Program* program_;
  const UnitConfig* config_;
  ReferenceUnits* found_;
  std::set<std::size_t> plain_layers_;
  std::vector<std::string> callables_;  // that run, in a region and around it
  std::size_t n_catches_ = 0;           // around what is gone through
  bool is_compiled_ = false;
  bool has_grad_ = true;
};

}  // namespace

ReferenceUnits reference_units(const Scenario& scenario, const Program& program) {
  ReferenceUnits found;
  UnitWalk(scenario, program, found).walk();
  return found;
}

}  // namespace remat
