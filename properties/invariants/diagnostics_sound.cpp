#include "properties/invariants/diagnostics_sound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/op_kinds.hpp"
#include "properties/invariants/configured_units.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "diagnostics_sound";
constexpr std::string_view codes[] = {"W-INERT", "W-IGNORED", "W-MUTATING", "W-OVER-KEPT",
                                      "W-UNDER-KEPT"};

/// What is told once: of which unit of which model, and of which op where it is about one.
struct Topic {
  std::string code;
  std::string owner;
  std::string unit;
  std::string op;
  friend auto operator<=>(const Topic&, const Topic&) = default;
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string shown(const Topic& topic) {
  return fmt::format("{} of unit {} of {}{}", topic.code, topic.unit,
                     topic.owner.empty() ? std::string("the model") : "model " + topic.owner,
                     topic.op.empty() ? "" : " for op " + topic.op);
}

/// "aten.add_.Tensor" is the op add.
std::string op_of(std::string_view name) {
  if (name.starts_with("aten.")) name.remove_prefix(5);
  name = name.substr(0, name.find('.'));
  return std::string(name.ends_with('_') ? name.substr(0, name.size() - 1) : name);
}

class DiagnosticsSound : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    rank_ = &ranks_[event.integer(Field::rank).value_or(-1)];
    switch (event.kind()) {
      case Kind::header:
        units_ = configured_units(event.text(Field::config));
        expect_of_config(event.seq());
        break;
      case Kind::unit_begin:
        begin(event, facts);
        break;
      case Kind::unit_end:
        end(event, facts);
        break;
      case Kind::mark:
        if (!rank_->passes.empty()) pass(event.text(Field::name));
        break;
      case Kind::mutate:
        rank_->last_write = event.seq();
        break;
      case Kind::op:
        rank_->last_op = event.seq();
        break;
      case Kind::sac_decide:
        if (!rank_->passes.empty()) decide(event);
        break;
      case Kind::warning:
        tell(event, report);
        break;
      case Kind::error:
        rank_->was_cut_short = true;
        break;
      case Kind::phase_begin:
        rank_->was_cut_short = false;
        break;
      case Kind::phase_end:
        if (event.phase() == Phase::forward) end_layers(event.seq());
        break;
      case Kind::step_end:
        if (facts.ends_the_step() && !facts.stopped_at()) compare(event, report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (units_.empty())
      report.not_checked(invariant_name, "config.units in the header: the save units asked for");
  }

 private:
  using Interval = std::pair<std::size_t, std::size_t>;  // unit, and which of its own

  /// One run of a checkpointed region in forward.
  struct Pass {
    std::string owner;
    std::set<Interval> open;
    std::set<std::size_t> kept;                 // units that kept something
    std::map<Topic, std::int64_t> unkept = {};  // writes in place that were asked for
  };

  /// What a rank is at.
  struct RankState {
    std::vector<Pass> passes;
    std::vector<std::string> callables;  // that run in this forward, in regions and around them
    std::map<std::string, std::set<std::size_t>> kept;  // by owners that ran in this forward
    bool was_cut_short = false;                         // the phase, by an error
    std::int64_t last_op = -1;
    std::int64_t last_write = -1;
  };

  bool is_selected(std::size_t unit, const std::string& owner) const {
    return contains(units_[unit].owners, owner) && !units_[unit].is_ignored;
  }

  void expect(Topic topic, std::int64_t seq) { expected_.try_emplace(std::move(topic), seq); }

  void expect_of_config(std::int64_t seq) {
    for (const ConfiguredUnit& unit : units_) {
      for (const std::string& owner : unit.owners) {
        if (unit.is_inert()) {
          expect({"W-INERT", owner, unit.name, {}}, seq);
        } else if (unit.is_ignored || contains(unit.without_layers, owner)) {
          expect({"W-IGNORED", owner, unit.name, {}}, seq);
        }
      }
    }
  }

  void begin(const EventView& event, const Facts& facts) {
    if (event.text(Field::exec) != "forward" || facts.in_replay()) return;
    if (event.boolean(Field::checkpointed) == false) {
      rank_->callables.emplace_back(event.text(Field::unit));
    } else if (event.has(Field::frame)) {
      rank_->passes.push_back({std::string(event.text(Field::owner)), {}, {}, {}});
    }
  }

  void end(const EventView& event, const Facts& facts) {
    if (event.text(Field::exec) != "forward" || facts.in_replay()) return;
    if (event.boolean(Field::checkpointed) == false) {
      if (!rank_->callables.empty()) rank_->callables.pop_back();
      return;
    }
    if (rank_->passes.empty() || !event.has(Field::frame)) return;
    const Pass pass = std::move(rank_->passes.back());
    rank_->passes.pop_back();
    const std::string_view ended_by = event.text(Field::ended_by);
    if (ended_by != "return" && ended_by != "end") return;  // I-40
    rank_->kept[pass.owner].insert(pass.kept.begin(), pass.kept.end());
    for (const auto& [topic, seq] : pass.unkept)
      expect(topic, seq);
    for (const auto& [unit, interval] : pass.open) {
      if (is_selected(unit, pass.owner))
        expect({"W-OVER-KEPT", pass.owner, units_[unit].name, {}}, event.seq());
    }
  }

  void pass(std::string_view marker) {
    std::set<Interval>& open = rank_->passes.back().open;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      for (std::size_t i = 0; i < units_[unit].intervals.size(); ++i) {
        const auto& [first, last] = units_[unit].intervals[i];
        if (marker == first) {
          open.insert({unit, i});
        } else if (marker == last) {
          open.erase({unit, i});
        }
      }
    }
  }

  bool asks(std::size_t unit, const std::string& op) const {
    const Pass& pass = rank_->passes.back();
    const ConfiguredUnit& asked = units_[unit];
    return contains(asked.ops, op) ||
           std::any_of(rank_->callables.begin(), rank_->callables.end(),
                       [&](const std::string& name) { return contains(asked.callables, name); }) ||
           std::any_of(pass.open.begin(), pass.open.end(),
                       [&](const Interval& interval) { return interval.first == unit; });
  }

  /// An op that is asked for and not kept wrote in place.
  void decide(const EventView& event) {
    const std::string name(event.text(Field::op));
    const std::string op = op_of(name);
    const std::string& owner = rank_->passes.back().owner;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      if (!is_selected(unit, owner) || !asks(unit, op)) continue;
      if (event.is_true(Field::saved)) {
        rank_->passes.back().kept.insert(unit);
      } else if (rank_->last_write > rank_->last_op && op != "record_stream" &&
                 !is_collective_name(name)) {
        rank_->passes.back().unkept.try_emplace({"W-MUTATING", owner, units_[unit].name, name},
                                                event.seq());
      }
    }
  }

  void end_layers(std::int64_t seq) {
    rank_->passes.clear();
    rank_->callables.clear();
    for (const auto& [owner, kept] : rank_->kept) {
      for (std::size_t unit = 0; unit < units_.size(); ++unit) {
        if (!rank_->was_cut_short && is_selected(unit, owner) && !units_[unit].is_inert() &&
            !kept.contains(unit))
          expect({"W-UNDER-KEPT", owner, units_[unit].name, {}}, seq);
      }
    }
    rank_->kept.clear();
  }

  void tell(const EventView& event, Report& report) {
    const std::string_view code = event.text(Field::code);
    if (std::find(std::begin(codes), std::end(codes), code) == std::end(codes)) return;
    const Topic topic{std::string(code), std::string(event.text(Field::owner)),
                      std::string(event.text(Field::unit)), std::string(event.text(Field::op))};
    const auto [before, is_new] = told_.try_emplace(topic, event.seq());
    if (is_new) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} is told again, after event {}; expected it once", shown(topic),
                             before->second),
                 {before->second, event.seq()});
  }

  void compare(const EventView& step_end, Report& report) {
    for (const auto& [topic, seq] : expected_) {
      if (told_.contains(topic) || !judged_.insert(topic).second) continue;
      report.found(invariant_name, step_end.seq(),
                   fmt::format("{} is not told, and event {} shows it; expected one warning",
                               shown(topic), seq),
                   {seq, step_end.seq()});
    }
    for (const auto& [topic, seq] : told_) {
      if (expected_.contains(topic) || !judged_.insert(topic).second) continue;
      report.found(invariant_name, step_end.seq(),
                   fmt::format("{} is told, and nothing that ran shows it; expected no warning",
                               shown(topic)),
                   {seq, step_end.seq()});
    }
  }

  std::vector<ConfiguredUnit> units_;
  std::map<std::int64_t, RankState> ranks_;
  RankState* rank_ = nullptr;               // whose event is looked at
  std::map<Topic, std::int64_t> expected_;  // with the event that shows it
  std::map<Topic, std::int64_t> told_;
  std::set<Topic> judged_;
};

}  // namespace

std::unique_ptr<Invariant> diagnostics_sound() {
  return std::make_unique<DiagnosticsSound>();
}

}  // namespace remat
