#include "traces/live_bytes.hpp"

#include <algorithm>
#include <string_view>

#include "model/errors.hpp"

namespace remat {
namespace {

// Far enough from the end of the range that shifts cannot carry it around.
constexpr WideInteger no_event = -(WideInteger{1} << 100);

void raise_to(WideInteger& most, WideInteger level, WideInteger shift) {
  if (level != no_event) most = std::max(most, level + shift);
}

}  // namespace

LiveBytes::LiveBytes() {
  stretches_.emplace_back();
  stretches_[0].all.fill(no_event);
  stretches_[0].without_gradients.fill(no_event);
}

void LiveBytes::add(Level& sum, const Level& change) {
  sum.all += change.all;
  sum.without_gradients += change.without_gradients;
}
void LiveBytes::subtract(Level& sum, const Level& change) {
  sum.all -= change.all;
  sum.without_gradients -= change.without_gradients;
}
ByteCount LiveBytes::told(const Level& level) {
  return {.all = saturated(level.all), .without_gradients = saturated(level.without_gradients)};
}

LiveBytes::Part LiveBytes::part_of(std::string_view role) {
  if (role.empty() || role == "op") return Part::counts;
  return role == "grad" ? Part::counts_as_gradient : Part::left_out;
}

LiveBytes::Level LiveBytes::share(const Storage& storage) {
  if (storage.stretch == 0) return {};
  return {.all = storage.part == Part::left_out ? 0 : storage.bytes,
          .without_gradients = storage.part == Part::counts ? storage.bytes : 0};
}

void LiveBytes::observe(const EventView& event) {
  const auto id = event.integer(Field::storage);
  bool about_left_out = false;
  if (id) {
    if (event.kind() == Kind::role) set_role(event, *id);
    // What happens to a parameter or an input is no moment of the activations' life.
    const Storage* known = storages_.find(*id);
    about_left_out = known != nullptr && known->role_given && known->part == Part::left_out;
    if (event.kind() == Kind::storage_alloc) allocate(event, *id);
    if (event.kind() == Kind::storage_free) release(*id);
  }
  if (!about_left_out) note_level(event.phase());
}

void LiveBytes::allocate(const EventView& event, std::int64_t id) {
  recorded_ = true;
  if (const Storage* known = storages_.find(id); known != nullptr && known->stretch != 0)
    release(id);  // a number in use again: the former bytes cannot be there any more
  Storage& storage = storages_[id];
  const Part born_as = part_of(event.text(Field::role));
  if (!storage.role_given) storage.part = born_as;
  storage.bytes = event.integer(Field::bytes).value_or(0);
  if (born_as == Part::left_out) return;
  storage.stretch = append_stretch();
  add(now_, share(storage));
}

void LiveBytes::release(std::int64_t id) {
  const Storage* storage = storages_.find(id);
  if (storage == nullptr) return;
  subtract(now_, share(*storage));
  if (storage->stretch != 0) merge_into_previous(storage->stretch);
  storages_.erase(id);
}

void LiveBytes::set_role(const EventView& event, std::int64_t id) {
  Storage& storage = storages_[id];
  Level change;
  subtract(change, share(storage));
  storage.part = part_of(event.text(Field::role));
  storage.role_given = true;
  add(change, share(storage));
  add(now_, change);
  if (storage.stretch == 0) return;
  add(stretches_[storage.stretch].shift, change);
  add(shifts_, change);
}

std::uint32_t LiveBytes::append_stretch() {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(stretches_.size()));
    stretches_.emplace_back();
  }
  const std::uint32_t at = unused_.back();
  unused_.pop_back();
  stretches_[at] =
      Stretch{.before = last_, .after = 0, .shift = {}, .all = {}, .without_gradients = {}};
  stretches_[at].all.fill(no_event);
  stretches_[at].without_gradients.fill(no_event);
  stretches_[last_].after = at;
  last_ = at;
  return at;
}

void LiveBytes::merge_into_previous(std::uint32_t at) {
  REMAT_INVARIANT(at != 0);
  const Stretch& gone = stretches_[at];
  Stretch& before = stretches_[gone.before];
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    raise_to(before.all[phase], gone.all[phase], gone.shift.all);
    raise_to(before.without_gradients[phase], gone.without_gradients[phase],
             gone.shift.without_gradients);
  }
  before.after = gone.after;
  if (at == last_) {
    last_ = gone.before;
    subtract(shifts_, gone.shift);
  } else {
    stretches_[gone.after].before = gone.before;
    add(stretches_[gone.after].shift, gone.shift);
  }
  unused_.push_back(at);
}

void LiveBytes::note_level(Phase phase) {
  Stretch& last = stretches_[last_];
  const auto at = static_cast<std::size_t>(phase);
  last.all[at] = std::max(last.all[at], now_.all - shifts_.all);
  last.without_gradients[at] =
      std::max(last.without_gradients[at], now_.without_gradients - shifts_.without_gradients);
}

std::map<Phase, ByteCount> LiveBytes::peaks() const {
  std::map<Phase, ByteCount> peaks;
  Level shift;
  for (std::uint32_t at = 0;; at = stretches_[at].after) {
    const Stretch& stretch = stretches_[at];
    add(shift, stretch.shift);
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (stretch.all[phase] == no_event) continue;
      const ByteCount most =
          told({.all = stretch.all[phase] + shift.all,
                .without_gradients = stretch.without_gradients[phase] + shift.without_gradients});
      ByteCount& peak = peaks.try_emplace(static_cast<Phase>(phase), most).first->second;
      peak.all = std::max(peak.all, most.all);
      peak.without_gradients = std::max(peak.without_gradients, most.without_gradients);
    }
    if (at == last_) return peaks;
  }
}

}  // namespace remat
