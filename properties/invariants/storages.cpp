#include "properties/invariants/storages.hpp"

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

StorageId StorageBook::at(std::int64_t number) {
  if (const auto found = by_number_.find(number)) return StorageId(*found);
  const StorageId id = rows_.push_back(Row{});
  rows_[id].number = number;
  by_number_.set(number, id.index());
  return id;
}

std::optional<StorageId> StorageBook::find(std::int64_t number) const {
  const auto found = by_number_.find(number);
  if (!found) return std::nullopt;
  return StorageId(*found);
}

std::optional<StorageId> StorageBook::of_tensor(std::int64_t tensor) const {
  const auto found = tensors_.find(tensor);
  if (!found) return std::nullopt;
  return StorageId(*found);
}

LiveStorage* StorageBook::live(StorageId id) {
  const std::uint32_t at = rows_[id].live;
  return at == none ? nullptr : &live_[at];
}

LiveStorage& StorageBook::allocate(StorageId id, std::int64_t bytes, std::int64_t seq) {
  REMAT_INVARIANT(rows_[id].live == none);
  rows_[id].live = static_cast<std::uint32_t>(live_.size());
  LiveStorage& storage = live_.emplace_back();
  storage.id = id;
  storage.bytes = bytes;
  storage.born_seq = seq;
  live_bytes_ = saturated_sum(live_bytes_, bytes);
  return storage;
}

void StorageBook::release(StorageId id, std::int64_t seq) {
  const std::uint32_t at = rows_[id].live;
  rows_[id].released_seq = seq;
  if (at == none) return;
  if (!is_outside(live_[at].role)) live_bytes_ -= live_[at].bytes;
  rows_[id].live = none;
  if (at + 1 != live_.size()) {
    live_[at] = live_.back();
    rows_[live_[at].id].live = at;
  }
  live_.pop_back();
}

void StorageBook::write(StorageId id, std::int64_t seq) {
  ++rows_[id].version;
  rows_[id].written_seq = seq;
}

void StorageBook::set_role(StorageId id, Role role) {
  LiveStorage* storage = live(id);
  if (storage == nullptr || storage->role == role) return;
  if (!is_outside(storage->role)) live_bytes_ -= storage->bytes;
  if (!is_outside(role)) live_bytes_ = saturated_sum(live_bytes_, storage->bytes);
  storage->role = role;
}

}  // namespace remat
