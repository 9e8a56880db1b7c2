#include "properties/invariants/copies.hpp"

#include <array>
#include <cstddef>

namespace remat {

std::string_view name_of(Whereabouts whereabouts) {
  constexpr std::array<std::string_view, 4> names = {"on the device", "on its way out",
                                                     "on the host", "on its way back"};
  return names[static_cast<std::size_t>(whereabouts)];
}

Whereabouts CopyStep::before() const {
  if (is_out) return begins ? Whereabouts::device : Whereabouts::on_the_way_out;
  return begins ? Whereabouts::away : Whereabouts::on_the_way_in;
}

Whereabouts CopyStep::after() const {
  if (is_out) return begins ? Whereabouts::on_the_way_out : Whereabouts::away;
  return begins ? Whereabouts::on_the_way_in : Whereabouts::device;
}

std::optional<CopyStep> copy_step(const EventView& event) {
  const bool begins = event.kind() == Kind::copy_begin;
  if (!begins && event.kind() != Kind::copy_end) return std::nullopt;
  const auto storage = event.integer(Field::storage);
  const std::string_view direction = event.text(Field::direction);
  if (!storage || (direction != "d2h" && direction != "h2d")) return std::nullopt;
  return CopyStep{StorageId(*storage), begins, direction == "d2h"};
}

std::optional<Absence> CopyBook::absence(StorageId storage) const {
  const auto found = on_the_way_.find(storage);
  if (found != on_the_way_.end()) return found->second;
  if (!away_.contains(storage.number())) return std::nullopt;
  return Absence{Whereabouts::away, *away_.find(storage.number())};
}

Whereabouts CopyBook::whereabouts(StorageId storage) const {
  const std::optional<Absence> absent = absence(storage);
  return absent ? absent->whereabouts : Whereabouts::device;
}

void CopyBook::take(const CopyStep& step, std::int64_t seq) {
  on_the_way_.erase(step.storage);
  if (away_.contains(step.storage.number())) away_.remove(step.storage.number());
  if (step.after() == Whereabouts::away) {
    away_.add(step.storage.number(), seq);
  } else if (step.after() != Whereabouts::device) {
    on_the_way_[step.storage] = {step.after(), {.seq = seq}};
  }
}

}  // namespace remat
