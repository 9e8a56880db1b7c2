#include "properties/invariants/no_leak_at_step_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "properties/invariants/excluded_bytes.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "no_leak_at_step_end";
constexpr std::size_t shown_max = 3;

/// What was still owned at a step's end.
struct Suspect {
  std::int64_t born_seq = 0;
  std::optional<StorageId> storage;  // or a slot, or an excluded region's entry
  std::optional<NameId> slot;
};

/// An entry that is still there: whose it is.
struct OwnedEntry {
  std::int64_t frame = 0;
  NameId wrapper{0};
  const ForwardCall* call = nullptr;
};

/// A step that has ended. A caller may let go of what it owns before its rank's next step (L2).
struct EndedStep {
  std::optional<std::int64_t> rank;
  std::int64_t seq = 0;
  std::vector<Suspect> suspects;
};

class NoLeakAtStepEnd : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    trace_ = &event.trace();
    switch (event.kind()) {
      case Kind::scope_enter:
      case Kind::scope_exit:
        observe_scope(event, facts, report);
        break;
      case Kind::step_begin:
        settle(event.integer(Field::rank), facts, report);
        break;
      case Kind::step_end:
        settle(event.integer(Field::rank), facts, report);
        observe_end(event, facts, report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts& facts, Report& report) override {
    settle(std::nullopt, facts, report);
    if (!any_end_) {
      report.not_checked(invariant_name, "a step_end event");
    } else if (!facts.header().storages_have_lifetimes) {
      report.not_checked(
          invariant_name,
          "storage_alloc and storage_free events, which the header says are not recorded");
    }
    if (stopped_at_) {
      report.not_checked(
          invariant_name,
          fmt::format("a step that ends: the run stopped at event {}", *stopped_at_));
    }
  }

 private:
  struct OpenScope {
    std::int64_t depth = 0;
    std::int64_t seq = 0;  // of the last enter
    std::string where;     // likewise
  };

  void observe_scope(const EventView& event, const Facts& facts, Report& report) {
    const auto scope = event.name(Field::scope);
    if (!scope) return;
    OpenScope& open = scopes_[{event.integer(Field::rank).value_or(-1), scope->index()}];
    if (event.kind() == Kind::scope_enter) {
      ++open.depth;
      open.seq = event.seq();
      open.where = where(event, facts);
      return;
    }
    if (open.depth > 0) {
      --open.depth;
      return;
    }
    report.found(invariant_name, event.seq(),
                 fmt::format("scope {} is left {} but was not entered; expected a scope_enter "
                             "before each scope_exit",
                             event.text(Field::scope), where(event, facts)),
                 {event.seq()});
  }

  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    any_end_ = true;
    if (facts.stopped_at()) {
      if (!stopped_at_) stopped_at_ = facts.stopped_at();
      scopes_.clear();
      return;
    }
    const auto rank = event.integer(Field::rank);
    report_open_scopes(event, rank, report);
    EndedStep step{rank, event.seq(), {}};
    collect_storages(facts, step);
    collect_slots(facts, step);
    collect_entries(facts, step);
    std::sort(step.suspects.begin(), step.suspects.end(),
              [](const Suspect& a, const Suspect& b) { return a.born_seq < b.born_seq; });
    ended_.push_back(std::move(step));
    if (!facts.header().has_a_caller) settle(rank, facts, report);
  }

  void report_open_scopes(const EventView& event, std::optional<std::int64_t> rank,
                          Report& report) {
    for (auto& [place, open] : scopes_) {
      if (open.depth == 0 || (rank && place.first != *rank)) continue;
      report.found(invariant_name, event.seq(),
                   fmt::format("scope {}, entered {} at event {}, is still open at the step's end; "
                               "expected a scope_exit "
                               "for each scope_enter",
                               event.trace().names()[NameId(place.second)], open.where, open.seq),
                   {open.seq, event.seq()});
      open.depth = 0;
    }
  }

  static bool is_of_another_rank(std::optional<std::int64_t> rank, const EndedStep& step) {
    return step.rank && rank && rank != step.rank;
  }

  // L1, L3
  static void collect_storages(const Facts& facts, EndedStep& step) {
    if (!facts.header().storages_have_lifetimes) return;
    for (const LiveStorage& live : facts.storages().all_live()) {
      if (is_outside(live.role) || live.born_in_setup) continue;
      if (live.born_seq <= facts.step_begin_seq(live.rank)) continue;
      if (is_of_another_rank(live.rank, step)) continue;
      const bool is_a_gradient =
          facts.header().is_a_recording && live.made_by_backward_op && !live.held_by_slot;
      if (!is_a_gradient) step.suspects.push_back({live.born_seq, live.id, std::nullopt});
    }
  }

  void collect_slots(const Facts& facts, EndedStep& step) const {
    if (!facts.slots().deaths_are_recorded()) return;
    facts.slots().each_alive([&](const Slot& slot) {
      if (slot.packed_seq <= facts.step_begin_seq(slot.rank)) return;
      if (is_of_another_rank(slot.rank, step)) return;
      // Nobody records the owner of a region's saved input.
      if (slot.is_brought) return;
      step.suspects.push_back({slot.packed_seq, std::nullopt, slot.name});
    });
  }

  // X11
  static void collect_entries(const Facts& facts, EndedStep& step) {
    facts.excluded_calls().each_entry([&](std::int64_t, NameId, const ForwardCall& call) {
      if (call.entry->put_seq <= facts.step_begin_seq(call.entry->rank)) return;
      if (is_of_another_rank(call.entry->rank, step)) return;
      step.suspects.push_back({call.entry->put_seq, std::nullopt, std::nullopt});
    });
  }

  static std::optional<OwnedEntry> entry_put_at(std::int64_t seq, const Facts& facts) {
    std::optional<OwnedEntry> owned;
    facts.excluded_calls().each_entry(
        [&](std::int64_t frame, NameId wrapper, const ForwardCall& call) {
          if (call.entry->put_seq == seq) owned = OwnedEntry{frame, wrapper, &call};
        });
    return owned;
  }

  static bool is_an_entry(const Suspect& suspect) { return !suspect.storage && !suspect.slot; }

  bool is_still_owned(const Suspect& suspect, const Facts& facts) const {
    if (is_an_entry(suspect)) return entry_put_at(suspect.born_seq, facts).has_value();
    if (suspect.storage) {
      const LiveStorage* live = facts.storages().live(*suspect.storage);
      return live != nullptr && live->born_seq == suspect.born_seq && !is_outside(live->role);
    }
    const Slot* slot = facts.slots().find(*suspect.slot);
    return slot != nullptr && !slot->released_seq && slot->packed_seq == suspect.born_seq;
  }

  static std::string shown_entry(const OwnedEntry& owned, const Facts& facts, const Trace& trace) {
    std::vector<StorageId> storages;
    for (const KeptOutput& output : owned.call->entry->outputs)
      storages.push_back(output.storage);
    const std::int64_t bytes = live_bytes_of(storages, facts);
    return fmt::format(
        "the cache entry of {} of {}{}, put at event {}",
        shown_wrapper(owned.wrapper, owned.call->number, trace),
        shown_call(owned.frame, facts, trace),
        bytes > 0 ? fmt::format(" ({} of kept outputs)", counted(bytes, "byte")) : std::string(),
        owned.call->entry->put_seq);
  }

  /// What an excluded region holds it for.
  static std::string holder_of(StorageId storage, const Facts& facts) {
    const ExcludedHoldings held = excluded_holdings(facts);
    if (std::binary_search(held.kept.begin(), held.kept.end(), storage))
      return ", kept by an excluded region's forward";
    if (std::binary_search(held.rederived.begin(), held.rederived.end(), storage))
      return ", rederived for an excluded region";
    return {};
  }

  std::string shown_suspect(const Suspect& suspect, const Facts& facts) const {
    if (is_an_entry(suspect))
      return shown_entry(*entry_put_at(suspect.born_seq, facts), facts, *trace_);
    if (suspect.slot) {
      return fmt::format("{}, packed at event {}",
                         shown(*facts.slots().find(*suspect.slot), *trace_), suspect.born_seq);
    }
    const LiveStorage& live = *facts.storages().live(*suspect.storage);
    return fmt::format(
        "{} ({}{}{}), born at event {}", shown(*suspect.storage, facts, *trace_),
        counted(live.bytes, "byte"),
        live.maker ? fmt::format(", made by {}", trace_->names()[*live.maker]) : std::string(),
        holder_of(*suspect.storage, facts), suspect.born_seq);
  }

  /// The callers of the rank (none: of every rank) have had their time.
  void settle(std::optional<std::int64_t> rank, const Facts& facts, Report& report) {
    for (EndedStep& step : ended_)
      if (!is_of_another_rank(rank, step)) judge(step, facts, report);
    std::erase_if(ended_, [&](const EndedStep& step) { return !is_of_another_rank(rank, step); });
  }

  /// What is still owned is a leak of the step that has ended.
  void judge(EndedStep& step, const Facts& facts, Report& report) const {
    std::vector<Suspect>& leaks = step.suspects;
    std::erase_if(leaks, [&](const Suspect& suspect) { return !is_still_owned(suspect, facts); });
    if (leaks.empty()) return;
    std::string list;
    std::vector<std::int64_t> proof = {step.seq};
    for (std::size_t i = 0; i < std::min(leaks.size(), shown_max); ++i) {
      list += (i > 0 ? "; " : "") + shown_suspect(leaks[i], facts);
      proof.push_back(leaks[i].born_seq);
    }
    if (leaks.size() > shown_max) list += fmt::format("; and {} more", leaks.size() - shown_max);
    const std::string how_many = leaks.size() == 1
                                     ? std::string("1 thing of it is")
                                     : fmt::format("{} things of it are", leaks.size());
    report.found(invariant_name, step.seq,
                 fmt::format("the step ends and {} still owned: {}; expected only parameters, "
                             "gradients and what the caller holds",
                             how_many, list),
                 std::move(proof));
  }

  std::map<std::pair<std::int64_t, std::uint32_t>, OpenScope> scopes_;  // (rank, scope)
  std::vector<EndedStep> ended_;
  std::optional<std::int64_t> stopped_at_;
  const Trace* trace_ = nullptr;
  bool any_end_ = false;
};

}  // namespace

std::unique_ptr<Invariant> no_leak_at_step_end() {
  return std::make_unique<NoLeakAtStepEnd>();
}

}  // namespace remat
