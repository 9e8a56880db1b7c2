#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedules/save_units.hpp"
#include "sim/rank.hpp"

// Save units: which of a policy's asks an op meets, and what users are told of units that keep more
// or less than they should (protocols.md P8, P9, I-38 to I-41).

namespace remat {
namespace {

std::string model_named(std::string_view owner) {
  return owner.empty() ? std::string("the model") : fmt::format("model {}", owner);
}

}  // namespace

std::string_view Rank::owner_of(const CheckpointFrame& frame) const {
  return region_of(frame.forward, frame.begin).owner;
}

/// The policy is asked about the op: it has one, and looks into the code around it.
bool Rank::is_policy_asked(const Walk& walk, const OpStatement& op) const {
  // About detach nobody asks: it is the cache's own (observed-torch.md §2).
  if (!walk.cache_of || !protocol_->serves_kept_ops() || op.kind->name == "detach") return false;
  if (units_ == nullptr) return true;
  return !is_hidden(walk) && units_->keeps_any(owner_of(*frames_[*walk.cache_of]));
}

/// What runs is compiled, and the policy does not see into that.
bool Rank::is_hidden(const Walk& walk) const {
  return walk.is_compiled && units_ != nullptr && !units_->rules().sees_compiled;
}

AskingUnits Rank::asking_units(const Walk& walk, const OpStatement& op) const {
  if (units_ == nullptr) return {};
  const CheckpointFrame& frame = *frames_[*walk.cache_of];
  const bool is_behind = has(RankFault::units_of_forward) && walk.is_replay;
  const UnitState& state = is_behind ? frame.units_at_end : walk.units;
  return units_->asking(owner_of(frame), op.kind->name, state);
}

/// The policy's answer for a call, `call` others of it having come before; `asking`: the units that
/// ask for the op.
bool Rank::keeps(const OpStatement& op, const AskingUnits& asking, std::size_t call) const {
  if (op.group && has(RankFault::collectives_kept_by_rank)) return false;
  return protocol_->keeps({.wanted = units_ == nullptr ? op.kept : !asking.empty(),
                           .writes = op.writes || op.kind->preserves_value,
                           .exchanges = op.group.has_value(),
                           .call = static_cast<std::int64_t>(call)});
}

/// Forward has asked about the op: units that keep something count it, and one that cannot says so.
Flow Rank::note_asked(const Walk& walk, const OpStatement& op, const AskingUnits& asking,
                      bool kept) {
  CheckpointFrame& frame = *frames_[*walk.cache_of];
  for (const std::size_t unit : asking) {
    if (kept) {
      frame.keeping_units.insert(unit);
      continue;
    }
    if (!op.writes || op.group) continue;
    if (units_->rules().refuses_writes) {
      return fail("E-STRUCTURE", "builtins.RuntimeError",
                  fmt::format("{} in {} writes in place, and unit {} is to keep what it makes: "
                              "move the op out of the unit's markers",
                              op.name, described(frame), units_->units()[unit].name));
    }
    frame.unkept_writes.emplace_back(unit, op.name);
  }
  return Flow::done;
}

/// In compiled code a marker is nothing.
void Rank::pass_marker(Walk& walk, const Mark& mark) {
  if (walk.is_compiled) return;
  log_->mark(mark.name);
  if (units_ != nullptr && walk.cache_of) units_->pass(mark.name, walk.units);
}

/// Each diagnosis once for each owner, however many layers it has.
void Rank::warn(const Diagnosis& diagnosis, const std::string& message) {
  Diagnosis key = diagnosis;
  if (has(RankFault::diagnostics_told_once)) key.owner.clear();
  if (!log_->book().told.insert(key).second) return;
  log_->warning(diagnosis, message);
}

/// What is wrong with the configuration shows before anything runs.
void Rank::warn_of_config() {
  if (units_ == nullptr) return;
  for (const auto& [owner, n_layers] : layers_of_models(*program_)) {
    const RegionMode first_layer =
        protocol_->region({.owner = owner, .layer = {.index = 0, .count = n_layers}});
    for (std::size_t i = 0; i < units_->units().size(); ++i) {
      const SaveUnit& unit = units_->units()[i];
      if (!units_->is_selected(owner, i)) continue;
      if (unit.is_inert()) {
        warn({"W-INERT", owner, unit.name, {}},
             fmt::format("{} of {} stands for nothing: none of its ops is registered", unit.name,
                         model_named(owner)));
      } else if (first_layer == RegionMode::plain) {
        warn({"W-IGNORED", owner, unit.name, {}},
             fmt::format("{} of {} is selected, and none of its layers is checkpointed", unit.name,
                         model_named(owner)));
      } else if (!units_->keeps_any(owner)) {
        warn({"W-IGNORED", owner, unit.name, {}},
             fmt::format("{} of {} is selected, and its regions are told to keep nothing",
                         unit.name, model_named(owner)));
      }
    }
  }
}

/// A checkpointed region's forward is over. An interval that is open now has kept all since.
void Rank::end_pass(const Walk& walk, const CheckpointFrame& frame) {
  if (units_ == nullptr || walk.is_replay) return;
  const std::string owner(owner_of(frame));
  unit_book_.kept[owner].insert(frame.keeping_units.begin(), frame.keeping_units.end());
  for (const auto& [unit, op] : frame.unkept_writes) {
    const std::string& name = units_->units()[unit].name;
    warn({"W-MUTATING", owner, name, op},
         fmt::format("{} of {}: {} writes in place; it is run again in a replay, not kept", name,
                     model_named(owner), op));
  }
  for (const auto& [unit, interval] : walk.units.open) {
    if (!units_->keeps_any(owner) || !units_->is_selected(owner, unit)) continue;
    const SaveUnit& asked = units_->units()[unit];
    warn({"W-OVER-KEPT", owner, asked.name, {}},
         fmt::format("{} of {}: from marker {} on everything is kept: {} does not come after it",
                     asked.name, model_named(owner), asked.intervals[interval].first,
                     asked.intervals[interval].second));
  }
}

/// All layers of the micro-batch have run: a unit that kept nothing in any of them keeps nothing.
void Rank::end_layers(Flow flow) {
  for (const auto& [owner, kept] : unit_book_.kept) {
    if (flow != Flow::done || !units_->keeps_any(owner)) continue;
    for (std::size_t i = 0; i < units_->units().size(); ++i) {
      const SaveUnit& unit = units_->units()[i];
      if (!units_->is_selected(owner, i) || unit.is_inert() || kept.contains(i)) continue;
      warn({"W-UNDER-KEPT", owner, unit.name, {}},
           fmt::format("{} of {} is selected and kept nothing in any of its layers", unit.name,
                       model_named(owner)));
    }
  }
  unit_book_.kept.clear();
}

}  // namespace remat
