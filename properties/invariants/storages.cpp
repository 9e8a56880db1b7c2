#include "properties/invariants/storages.hpp"

#include <utility>

#include "model/errors.hpp"

namespace remat {

Role role_named(std::string_view name) {
  if (name == "param") return Role::param;
  if (name == "buffer") return Role::buffer;
  if (name == "input") return Role::input;
  if (name == "grad") return Role::grad;
  if (name == "grad_output") return Role::grad_output;
  if (name == "external") return Role::external;
  return Role::none;
}

void StorageBook::forget(std::int64_t number) {
  const Row* row = rows_.find(number);
  if (row == nullptr) return;
  if (row->version > 0) set_old_version(number, row->version);
  rows_.erase(number);
}

StorageId StorageBook::at(std::int64_t number) {
  if (!find(number)) rows_[number] = Row{};
  return StorageId(number);
}

std::optional<StorageId> StorageBook::find(std::int64_t number) const {
  if (!rows_.contains(number) && !releases_.contains(number)) return std::nullopt;
  return StorageId(number);
}

std::optional<StorageId> StorageBook::of_tensor(std::int64_t tensor) const {
  const auto number = tensors_.find(tensor);
  if (!number) return std::nullopt;
  return StorageId(*number);
}

std::optional<NameId> StorageBook::name(StorageId id) const {
  const Row* row = rows_.find(id.number());
  return row == nullptr ? std::nullopt : row->name;
}

void StorageBook::set_name(StorageId id, std::optional<NameId> name) {
  if (Row* row = rows_.find(id.number()); row != nullptr && name) row->name = name;
}

std::uint32_t StorageBook::version(StorageId id) const {
  if (const Row* row = rows_.find(id.number())) return row->version;
  return old_version(id.number());
}

// As a distance from the number, which the table holds in four bytes; wraps around at the largest.
std::uint32_t StorageBook::old_version(std::int64_t number) const {
  const auto shifted = old_versions_.find(number);
  if (!shifted) return 0;
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(*shifted) -
                                    static_cast<std::uint64_t>(number));
}

void StorageBook::set_old_version(std::int64_t number, std::uint32_t version) {
  old_versions_.set(number,
                    static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + version));
}

std::optional<std::int64_t> StorageBook::written_seq(StorageId id) const {
  const Row* row = rows_.find(id.number());
  if (row == nullptr || row->written_seq < 0) return std::nullopt;
  return row->written_seq;
}

LiveStorage* StorageBook::live(StorageId id) {
  const Row* row = rows_.find(id.number());
  return row == nullptr || row->live == none ? nullptr : &live_[row->live];
}

std::int64_t StorageBook::live_bytes(std::optional<std::int64_t> rank) const {
  if (!rank) return live_bytes_.count();
  const ByteTotal* of_rank = of_rank_.find(*rank);
  return of_rank == nullptr ? 0 : of_rank->count();
}

void StorageBook::count(const LiveStorage& storage, bool is_alive) {
  const auto change = [&](ByteTotal& total) {
    is_alive ? total.add(storage.bytes) : total.subtract(storage.bytes);
  };
  change(live_bytes_);
  if (storage.rank) change(of_rank_[*storage.rank]);
}

LiveStorage& StorageBook::allocate(StorageId id, std::int64_t bytes, std::int64_t seq,
                                   std::optional<std::int64_t> rank) {
  releases_.remove(id.number());
  const std::uint32_t version_before = version(id);
  Row& row = rows_[id.number()];
  REMAT_INVARIANT(row.live == none);
  row.version = version_before;
  row.live = static_cast<std::uint32_t>(live_.size());
  LiveStorage& storage = live_.emplace_back();
  storage.id = id;
  storage.bytes = bytes;
  storage.born_seq = seq;
  storage.rank = rank;
  count(storage, true);
  return storage;
}

void StorageBook::release(StorageId id, std::int64_t seq) {
  if (Row* row = rows_.find(id.number()); row != nullptr && row->live != none) {
    const std::uint32_t at = std::exchange(row->live, none);
    if (!is_outside(live_[at].role)) count(live_[at], false);
    if (at + 1 != live_.size()) {
      live_[at] = live_.back();
      rows_.find(live_[at].id.number())->live = at;
    }
    live_.pop_back();
  }
  if (const auto forgotten = releases_.add(id.number(), seq)) forget(*forgotten);
}

void StorageBook::write(StorageId id, std::int64_t seq) {
  Row* row = rows_.find(id.number());
  if (row == nullptr) {
    set_old_version(id.number(), old_version(id.number()) + 1);
    return;
  }
  ++row->version;
  row->written_seq = seq;
}

void StorageBook::set_role(StorageId id, Role role) {
  LiveStorage* storage = live(id);
  if (storage == nullptr || storage->role == role) return;
  if (!is_outside(storage->role)) count(*storage, false);
  if (!is_outside(role)) count(*storage, true);
  storage->role = role;
}

}  // namespace remat
