#include "properties/invariants/slots.hpp"

#include <algorithm>

namespace remat {

Held held_named(std::string_view name) {
  if (name == "saved") return Held::saved;
  if (name == "placeholder") return Held::placeholder;
  if (name == "offloaded") return Held::offloaded;
  if (name == "slot") return Held::slot;
  return Held::unknown;
}

const Fill* Slot::fill_for(std::optional<SessionKey> session) const {
  for (std::size_t i = fills.size(); i-- > 0;) {
    const Fill& fill = fills[i];
    // A fill or a read whose session the trace does not tell could be any's: no fault is certain.
    if (!fill.session || !session || fill.session == session || held == Held::slot) return &fill;
  }
  return nullptr;
}

Request* Slot::open_request(std::optional<SessionKey> session) {
  for (std::size_t i = requests.size(); i-- > 0;) {
    Request& request = requests[i];
    if (request.begun && (!session || !request.session || request.session == session))
      return &request;
  }
  return nullptr;
}

const Slot* SlotBook::of(const EventView& event) const {
  if (const auto name = event.name(Field::slot)) return find(*name);
  const auto frame = event.integer(Field::frame);
  const auto index = event.integer(Field::idx);
  if (!frame || !index) return nullptr;
  const auto found = by_index_.find({*frame, *index});
  return found == by_index_.end() ? nullptr : find(found->second);
}

void SlotBook::forget(const Slot& slot) {
  alive_.erase(slot.packed_seq);
  if (slot.frame && slot.index) {
    const auto found = by_index_.find({*slot.frame, *slot.index});
    if (found != by_index_.end() && found->second == slot.name) by_index_.erase(found);
  }
  slots_.erase(slot.name.index());
}

Slot& SlotBook::pack(Slot slot) {
  if (const Slot* old = find(slot.name)) forget(Slot(*old));
  released_.remove(slot.name.index());
  alive_.insert_or_assign(slot.packed_seq, slot.name);
  if (slot.frame && slot.index) by_index_.insert_or_assign({*slot.frame, *slot.index}, slot.name);
  Slot& kept = slots_[slot.name.index()];
  kept = std::move(slot);
  return kept;
}

void SlotBook::release(NameId name, std::int64_t seq) {
  deaths_are_recorded_ = true;
  Slot* slot = find(name);
  if (slot == nullptr || slot->released_seq) return;
  slot->released_seq = seq;
  released_.add(name.index(), seq);
  alive_.erase(slot->packed_seq);
  slot->fills.clear();
  slot->requests.clear();
  if (!slot->frame) forget(Slot(*slot));
}

void SlotBook::free_frame(const std::vector<NameId>& saves) {
  for (const NameId name : saves) {
    Slot* slot = find(name);
    if (slot == nullptr) continue;
    if (slot->released_seq) {
      forget(Slot(*slot));
    } else {
      slot->frame.reset();
    }
  }
}

std::optional<ReleaseMoment> SlotBook::released(NameId name) const {
  return released_.find(name.index());
}

void SlotBook::withdraw_requests() {
  for (const auto& [order, name] : alive_) {
    std::erase_if(slots_[name.index()].requests,
                  [](const Request& request) { return request.begun; });
  }
}

void SlotBook::clear_session(SessionKey session) {
  for (const auto& [order, name] : alive_) {
    Slot& slot = slots_[name.index()];
    if (slot.held == Held::slot) {
      for (Fill& fill : slot.fills)
        if (fill.session == session) fill.session.reset();
    } else {
      std::erase_if(slot.fills, [&](const Fill& fill) { return fill.session == session; });
    }
    std::erase_if(slot.requests,
                  [&](const Request& request) { return request.session == session; });
  }
}

}  // namespace remat
