#include "properties/invariants/slot_used_once.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

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

  void finish(const Facts&, Report& report) override {
    if (!any_use_) {
      report.not_checked(invariant_name,
                         "unpack, unpack_begin or repack events, or field_put and field_get");
    }
  }

 private:
  static void observe_fill(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || !facts.session()) return;
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
      return;
    }
  }

  // S3: asking is what counts, whether or not the real system refused.
  static void observe_request(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq || slot->held == Held::slot) return;
    if (event.kind() == Kind::unpack) observe_handed_out(event, facts, *slot, report);
    if (slot->held == Held::saved) return;
    const bool answers =
        event.kind() != Kind::unpack_begin && slot->open_request(facts.session()) != nullptr;
    if (!answers) observe_second_request(event, facts, *slot, report);
  }

  static void observe_second_request(const EventView& event, const Facts& facts, const Slot& slot,
                                     Report& report) {
    if (!facts.session() || facts.retains(*facts.session())) return;
    for (std::size_t i = slot.requests.size(); i-- > 0;) {
      const Request& earlier = slot.requests[i];
      if (earlier.session != facts.session()) continue;
      if (earlier.retained) return;
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

  std::map<std::pair<std::int64_t, std::uint32_t>, Entry>
      entries_;  // (rank, field) → what it holds
  bool any_use_ = false;
};

}  // namespace

std::unique_ptr<Invariant> slot_used_once() {
  return std::make_unique<SlotUsedOnce>();
}

}  // namespace remat
