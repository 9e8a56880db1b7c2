#include "properties/invariants/slot_used_once.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "properties/invariants/told_handles.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "slot_used_once";

class SlotUsedOnce : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::repack:
        observe_fill(event, facts, report);
        break;
      case Kind::slot_fill:
        observe_excluded_fill(event, facts, report);
        break;
      case Kind::cache_pop:
        observe_pop(event, facts, report);
        break;
      case Kind::unit_end:
        if (facts.ended_scope()) out_of_order_.erase(facts.ended_scope()->id);
        return;
      case Kind::unpack_begin:
      case Kind::unpack:
      case Kind::unpack_error:
        observe_request(event, facts, report);
        break;
      case Kind::field_put:
        observe_put(event, report);
        break;
      case Kind::field_get:
        observe_get(event, report);
        break;
      default:
        break;
    }
    any_use_ = true;
  }

  void finish(const Facts& facts, Report& report) override {
    if (!any_use_) {
      report.not_checked(invariant_name,
                         "unpack, unpack_begin or repack events, or field_put and field_get");
    } else if (!facts.header().storages_have_lifetimes) {
      report.not_checked(invariant_name,
                         "storage_alloc and storage_free events, which the header says are not "
                         "recorded (that a slot hands out what was filled in was not compared)");
    }
  }

 private:
  /// Tells a second fill in one session.
  static bool observe_fill(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || !facts.session()) return false;
    for (const Fill& fill : slot->fills) {
      if (fill.session != facts.session()) continue;
      report.found(
          invariant_name, event.seq(),
          fmt::format(
              "{} is filled {}, but {} filled it before, at event {}; expected one fill for each "
              "session",
              shown(*slot, event.trace()), where(event, facts),
              shown(facts.session(), event.trace()), fill.seq),
          {fill.seq, event.seq()});
      return true;
    }
    return false;
  }

  // X3
  void observe_excluded_fill(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq || told_.contains(*slot)) return;
    if (belongs_there(event, facts, *slot)) {
      if (observe_fill(event, facts, report)) told_.insert(*slot);
      return;
    }
    told_.insert(*slot);
    std::string filler = shown_input(*event.name(Field::wrapper), forward_number(event, facts),
                                     event.text(Field::path), event.trace());
    if (facts.frame()) filler += " of " + shown_call(*facts.frame(), facts, event.trace());
    report.found(invariant_name, event.seq(),
                 fmt::format("{} is filled {} for {}; a slot serves the call and the input that it "
                             "was packed for",
                             shown(*slot, event.trace()), where(event, facts), filler),
                 {slot->packed_seq, event.seq()});
  }

  /// The forward call that the fill stands for: `call` is the replay's own count.
  static std::optional<std::int64_t> forward_number(const EventView& event, const Facts& facts) {
    if (event.has(Field::entry_call)) return event.integer(Field::entry_call);
    const OpenCall* call = facts.excluded_call();
    const ForwardCall* forward = call != nullptr ? facts.excluded_calls().forward(*call) : nullptr;
    return forward != nullptr && forward->number ? forward->number : event.integer(Field::call);
  }

  /// What both sides record of the slot's place agrees.
  static bool belongs_there(const EventView& event, const Facts& facts, const Slot& slot) {
    const auto wrapper = event.name(Field::wrapper);
    if (!slot.excluded || !wrapper) return true;
    const ExcludedPlace& place = *slot.excluded;
    return *wrapper == place.wrapper && agrees(facts.frame(), place.frame) &&
           agrees(forward_number(event, facts), place.call) &&
           (place.path.empty() || !event.has(Field::path) || event.text(Field::path) == place.path);
  }

  // X8, X9
  void observe_pop(const EventView& event, const Facts& facts, Report& report) {
    const auto& asked = facts.asked_entry();
    const auto wrapper = event.name(Field::wrapper);
    if (!asked || !asked->nth_call || !wrapper) return;
    const auto at = [&](std::size_t place) {
      return facts.excluded_calls().forward(*facts.frame(), *wrapper, place);
    };
    const ForwardCall& due = *at(*asked->nth_call);
    if (due.entry->left_seq &&
        (due.entry->left_in_scope != facts.own_replay() || facts.own_replay() == 0)) {
      report.found(invariant_name, event.seq(),
                   fmt::format("{} asks {} for the {} entry, put at event {}, but that left at "
                               "event {}; an entry is handed out once, over all sessions",
                               shown_excluded_call(event, facts), where(event, facts),
                               ordinal(asked->nth + 1), due.entry->put_seq, *due.entry->left_seq),
                   {due.entry->put_seq, *due.entry->left_seq, event.seq()});
      return;
    }
    const auto named = event.integer(Field::entry_call);
    if (!named || !due.number || named == due.number) return;
    if (std::exchange(out_of_order_[facts.own_replay()], true)) return;  // R1: the first one tells
    report.found(invariant_name, event.seq(),
                 fmt::format("{} takes the entry of call {} {}, but that of call {}, put at event "
                             "{}, is next; entries leave in the order in which they came",
                             shown_excluded_call(event, facts), *named, where(event, facts),
                             *due.number, due.entry->put_seq),
                 {due.entry->put_seq, event.seq()});
  }

  // S3: asking is what counts, whether or not the real system refused.
  static void observe_request(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq) return;
    if (event.kind() == Kind::unpack) observe_handed_out(event, facts, *slot, report);
    if (slot->held == Held::saved || slot->held == Held::slot) return;  // X2: any number of times
    const bool answers =
        event.kind() != Kind::unpack_begin && slot->open_request(facts.session()) != nullptr;
    if (!answers) observe_second_request(event, facts, *slot, report);
  }

  static void observe_second_request(const EventView& event, const Facts& facts, const Slot& slot,
                                     Report& report) {
    if (!facts.session()) return;
    for (std::size_t i = slot.requests.size(); i-- > 0;) {
      const Request& earlier = slot.requests[i];
      if (earlier.session != facts.session()) continue;
      // S6: what the unpack itself says of its fill goes before what its session was opened for.
      if (earlier.retained.value_or(facts.retains(*facts.session()))) return;
      report.found(invariant_name, event.seq(),
                   fmt::format("{} is asked for {}{} again, after event {}; a session that does "
                               "not retain gets a slot "
                               "once",
                               shown(slot, event.trace()), where(event, facts),
                               by_session(facts.session(), facts, event.trace()), earlier.seq),
                   {earlier.seq, event.seq()});
      return;
    }
  }

  // S4: the tensor may be another object, its storage is the one that was filled in, or kept.
  static void observe_handed_out(const EventView& event, const Facts& facts, const Slot& slot,
                                 Report& report) {
    if (!facts.header().storages_have_lifetimes) return;
    const Fill* fill = slot.fill_for(facts.session());
    if (fill == nullptr && slot.held != Held::saved) return;
    const std::optional<StorageId> kept =
        fill != nullptr ? fill->what.storage : slot.packed.storage;
    const auto tensor = event.tensor(Field::tensor);
    if (!kept || !tensor || !tensor->storage) return;
    const std::int64_t expected = kept->number();
    if (expected == *tensor->storage) return;
    // R1: a replay that left forward's order has been told, what its fills hand out follows.
    if (fill != nullptr && report.found_since("saved_lists_match", fill->replay_begin_seq)) return;
    const std::int64_t since = fill != nullptr ? fill->seq : slot.packed_seq;
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} hands out storage {} {}, but storage {} was {} at event {}; expected "
                    "that value",
                    shown(slot, event.trace()), *tensor->storage, where(event, facts), expected,
                    fill != nullptr ? "filled in" : "kept", since),
        {since, event.seq()});
  }

  struct Entry {
    std::string key;
    std::int64_t seq = 0;
    bool read = false;
  };

  // S5: single-entry places outside the slots.
  void observe_put(const EventView& event, Report& report) {
    const auto field = event.name(Field::field);
    if (!field) return;
    const auto found = entries_.find(place(event, *field));
    if (found != entries_.end() && !found->second.read) {
      report.found(invariant_name, event.seq(),
                   fmt::format("field {} is filled again{} while what event {} put there{} is "
                               "unread; it holds one entry, "
                               "so that one is lost",
                               event.text(Field::field), keyed(event.text(Field::key)),
                               found->second.seq, keyed(found->second.key)),
                   {found->second.seq, event.seq()});
    }
    entries_[place(event, *field)] = {std::string(event.text(Field::key)), event.seq(), false};
  }

  void observe_get(const EventView& event, Report& report) {
    const auto field = event.name(Field::field);
    if (!field) return;
    const auto found = entries_.find(place(event, *field));
    if (found == entries_.end()) return;
    const std::string_view key = event.text(Field::key);
    found->second.read = true;
    if (key.empty() || found->second.key.empty() || key == found->second.key) return;
    if (report.found_since(invariant_name, found->second.seq))
      return;  // told when the entry was overwritten
    report.found(invariant_name, event.seq(),
                 fmt::format("field {} is read{}, but holds what event {} put there{}; expected "
                             "the entry of the same key",
                             event.text(Field::field), keyed(key), found->second.seq,
                             keyed(found->second.key)),
                 {found->second.seq, event.seq()});
  }

  static std::string keyed(std::string_view key) {
    return key.empty() ? std::string() : fmt::format(" for {}", key);
  }
  static std::pair<std::int64_t, std::uint32_t> place(const EventView& event, NameId field) {
    return {event.integer(Field::rank).value_or(-1), field.index()};
  }

  ToldHandles told_;            // whose fill was told
  FlatMap<bool> out_of_order_;  // replays that took an entry before its turn
  std::map<std::pair<std::int64_t, std::uint32_t>, Entry>
      entries_;  // (rank, field) → what it holds
  bool any_use_ = false;
};

}  // namespace

std::unique_ptr<Invariant> slot_used_once() {
  return std::make_unique<SlotUsedOnce>();
}

}  // namespace remat
