#include "properties/invariants/unpack_follows_replay.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "properties/invariants/told_handles.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "unpack_follows_replay";

bool holds_no_tensor(const Slot& slot) {
  return slot.held == Held::placeholder || slot.held == Held::offloaded || slot.held == Held::slot;
}

std::string_view what_is_held(const Slot& slot) {
  switch (slot.held) {
    case Held::placeholder:
      return "a placeholder";
    case Held::offloaded:
      return "nothing on the device";
    case Held::slot:
      return "an empty input slot";
    case Held::saved:
    case Held::unknown:
      return "a reference to be rebuilt";
  }
  return {};
}

class UnpackFollowsReplay : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::remat_rederive: {
        const auto region = event.name(Field::region);
        if (region && facts.session())
          rederived_.insert({region->index(), facts.session()->bits()});
        break;
      }
      case Kind::session_clear:  // S7: what was rebuilt for the session is gone
        if (facts.session()) {
          std::erase_if(rederived_,
                        [&](const auto& entry) { return entry.second == facts.session()->bits(); });
        }
        break;
      case Kind::step_end:
        if (facts.ends_the_step()) rederived_.clear();
        break;
      case Kind::pack:
        any_slot_ = any_slot_ || event.text(Field::held) != "saved" || is_saved_input(event);
        break;
      case Kind::unpack:
        observe_unpack(event, facts, report);
        break;
      case Kind::unpack_error:
        observe_refusal(event, facts, report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (!any_slot_) {
      report.not_checked(
          invariant_name,
          "slots that hold no tensor: pack events with held placeholder, offloaded or slot");
    }
  }

 private:
  static bool is_saved_input(const EventView& event) {
    return event.text(Field::role) == "remat_saved_input";
  }

  bool is_filled(const Slot& slot, const Facts& facts) const {
    // Where the trace tells what each slot is filled with, that alone counts.
    if (slot.is_brought && slot.fills.empty()) {
      return !slot.region || !facts.session() ||
             rederived_.count({slot.region->index(), facts.session()->bits()}) > 0;
    }
    return !holds_no_tensor(slot) || slot.fill_for(facts.session()) != nullptr;
  }

  void observe_unpack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq || is_filled(*slot, facts)) return;
    if (slot->held == Held::slot) {  // one input of a call may be saved, and read, several times
      if (told_.contains(*slot)) return;
      told_.insert(*slot);
    }
    std::vector<std::int64_t> proof = {slot->packed_seq, event.seq()};
    std::string filled = "nothing has filled it";
    if (!slot->fills.empty()) {
      filled =
          fmt::format("only {} has filled it", shown(slot->fills.back().session, event.trace()));
      proof.push_back(slot->fills.back().seq);
    }
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} is read {}{}, but {}: since its pack it holds {}; expected a replay or a reload of "
            "the same session before the read",
            shown(*slot, event.trace()), where(event, facts),
            by_session(facts.session(), facts, event.trace()), filled, what_is_held(*slot)),
        std::move(proof));
  }

  // F5: the real system refused the read because nothing had filled the slot.
  static void observe_refusal(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq || !holds_no_tensor(*slot)) return;
    // What a region's slot was filled with went to another session: nothing wrong was read.
    if (slot->is_brought && event.text(Field::code) == "E-TWICE") return;
    const Request* open = slot->open_request(facts.session());
    const std::optional<SessionKey> session = open != nullptr ? open->session : facts.session();
    // E1: where no unpack_begin stands, it may have been asked for at any time since its pack.
    const std::int64_t asked_seq = open != nullptr ? open->seq : slot->packed_seq;
    for (const Request& request : slot->requests)
      if (request.seq != asked_seq && request.session == session) return;
    if (slot->fill_for(session) != nullptr || facts.replay_raised_since(asked_seq)) return;
    if (report.found_since(asked_seq)) return;
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} is asked for {}{} and refused: nothing has filled it since its pack, it holds {}; "
            "expected a replay or a reload of the same session before the read",
            shown(*slot, event.trace()), where(event, facts),
            by_session(session, facts, event.trace()), what_is_held(*slot)),
        {slot->packed_seq, asked_seq, event.seq()});
  }

  std::set<std::pair<std::uint32_t, std::int64_t>> rederived_;  // (region, session)
  ToldHandles told_;  // excluded regions' inputs whose read was told
  bool any_slot_ = false;
};

}  // namespace

std::unique_ptr<Invariant> unpack_follows_replay() {
  return std::make_unique<UnpackFollowsReplay>();
}

}  // namespace remat
