#include "sim/ledger.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "sim/event_log.hpp"

namespace remat {

std::string_view name_of(OwnerClass owner) {
  constexpr std::array<std::string_view, owner_class_count> names = {
      "PARAM", "INPUT",     "GRAD",      "REGION_INPUT", "OUTER_SAVED", "EXCL_SAVED", "EXCL_OUTPUT",
      "SLOT",  "PERSISTED", "SAC_CACHE", "RECOMPUTED",   "FORWARD_TMP", "REPLAY_TMP"};
  return names[static_cast<std::size_t>(owner)];
}

std::uint32_t Ledger::allocate(std::int64_t bytes, BufferRole role, std::string_view maker) {
  std::uint32_t storage = 0;
  if (free_rows_.empty()) {
    storage = static_cast<std::uint32_t>(rows_.size());
    rows_.emplace_back();
  } else {
    storage = free_rows_.back();
    free_rows_.pop_back();
    rows_[storage] = Row{};
  }
  Row& row = rows_[storage];
  row.number = log_->book().storage++;
  row.bytes = bytes;
  row.is_outside = role != BufferRole::none;
  log_->storage_alloc(row.number, bytes, role, maker);
  return storage;
}

void Ledger::own(std::uint32_t storage, OwnerClass owner) {
  Row& row = rows_[storage];
  if (row.counted_as == unowned && !row.is_outside) admit(row);
  ++row.owners[static_cast<std::size_t>(owner)];
  ++row.n_owners;
  if (static_cast<std::uint8_t>(owner) < row.counted_as) recount(row);
}

/// Its bytes are alive from here on, if there is room to count them.
void Ledger::admit(const Row& row) {
  std::int64_t total = 0;
  if (__builtin_add_overflow(live_.total, row.bytes, &total))
    throw InputError("more bytes are alive than can be counted; expected smaller tensors");
  live_.total = total;
}

void Ledger::disown(std::uint32_t storage, OwnerClass owner) {
  Row& row = rows_[storage];
  const auto index = static_cast<std::size_t>(owner);
  --row.owners[index];
  --row.n_owners;
  if (row.n_owners > 0) {
    if (row.owners[index] == 0 && row.counted_as == index) recount(row);
    return;
  }
  if (row.counts()) {
    live_.by_class[row.counted_as] -= row.bytes;
    live_.total -= row.bytes;
  }
  if (row.residence == Residence::away) {
    level_of(row).live -= row.bytes;
  } else {
    if (row.residence != Residence::device) {
      const bool is_out = row.residence == Residence::on_the_way_out;
      log_->copy(Kind::copy_end, row.number, row.level, is_out);
    }
    log_->storage_free(row.number, row.bytes);
  }
  free_rows_.push_back(storage);
}

bool Ledger::is_kept(std::uint32_t storage) const {
  constexpr std::array keepers = {OwnerClass::region_input, OwnerClass::outer_saved,
                                  OwnerClass::excl_saved,   OwnerClass::excl_output,
                                  OwnerClass::persisted,    OwnerClass::sac_cache};
  return std::any_of(keepers.begin(), keepers.end(), [&](OwnerClass keeper) {
    return rows_[storage].owners[static_cast<std::size_t>(keeper)] > 0;
  });
}

void Ledger::begin_copy_out(std::uint32_t storage, MemoryLevel level) {
  Row& row = rows_[storage];
  row.residence = Residence::on_the_way_out;
  row.level = level;
  log_->copy(Kind::copy_begin, row.number, level, true);
}

void Ledger::end_copy_out(std::uint32_t storage) {
  Row& row = rows_[storage];
  if (row.counts()) {
    live_.by_class[row.counted_as] -= row.bytes;
    live_.total -= row.bytes;
  }
  row.residence = Residence::away;
  LevelBytes& level = level_of(row);
  level.live = saturated_sum(level.live, row.bytes);
  level.peak = std::max(level.peak, level.live);
  level.sent = saturated_sum(level.sent, row.bytes);
  log_->copy(Kind::copy_end, row.number, row.level, true);
  log_->storage_free(row.number, row.bytes);
}

void Ledger::begin_copy_in(std::uint32_t storage) {
  Row& row = rows_[storage];
  level_of(row).live -= row.bytes;
  row.residence = Residence::on_the_way_in;
  if (!row.is_outside) {
    admit(row);
    count(row);
  }
  log_->storage_alloc(row.number, row.bytes, BufferRole::none, "reload");
  log_->copy(Kind::copy_begin, row.number, row.level, false);
}

void Ledger::end_copy_in(std::uint32_t storage) {
  Row& row = rows_[storage];
  row.residence = Residence::device;
  level_of(row).returned = saturated_sum(level_of(row).returned, row.bytes);
  log_->copy(Kind::copy_end, row.number, row.level, false);
}

/// Counts the storage for the first class that owns it.
void Ledger::recount(Row& row) {
  const auto* const first =
      std::find_if(row.owners.begin(), row.owners.end(), [](std::uint32_t n) { return n > 0; });
  const auto now = static_cast<std::uint8_t>(first - row.owners.begin());
  const std::uint8_t before = std::exchange(row.counted_as, now);
  if (!row.counts()) return;
  if (before != unowned) live_.by_class[before] -= row.bytes;
  count(row);
}

/// Under the class that it counts for; the total has it already.
void Ledger::count(const Row& row) {
  std::int64_t& of_class = live_.by_class[row.counted_as];
  of_class += row.bytes;
  most_[row.counted_as] = std::max(most_[row.counted_as], of_class);
  note_peak();
}

void Ledger::note_peak() {
  recent_peak_ = std::max(recent_peak_, live_.total);
  if (live_.total > at_peak_.total) at_peak_ = live_;
}

}  // namespace remat
