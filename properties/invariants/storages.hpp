#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/flat_map.hpp"
#include "model/id.hpp"
#include "model/units.hpp"
#include "properties/invariants/id_table.hpp"
#include "properties/invariants/release_log.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A storage by the trace's own number, which no other storage ever has.
class StorageId {
 public:
  constexpr explicit StorageId(std::int64_t number) : number_(number) {}
  constexpr std::int64_t number() const { return number_; }
  friend constexpr auto operator<=>(StorageId, StorageId) = default;

 private:
  std::int64_t number_;
};

/// Who a storage belongs to. `none` is an ordinary one, made by an op; all others lie outside a
/// step's own bytes.
enum class Role : std::uint8_t { none, param, buffer, input, grad, grad_output, external };

Role role_named(std::string_view name);
/// The storage is nobody's business but the caller's: not counted, never leaked, not judged at step
/// end.
inline bool is_outside(Role role) {
  return role != Role::none;
}

/// A storage that is alive.
struct LiveStorage {
  StorageId id{0};
  Role role = Role::none;
  std::int64_t bytes = 0;
  std::int64_t born_seq = 0;
  std::optional<std::uint32_t> born_version;  // none: it was there before it was seen
  std::optional<std::int64_t> rank;
  std::int64_t made_by_frame =
      0;  // frame key of the innermost body that it was born in, or `no_frame`
  bool born_in_setup = false;
  bool made_by_backward_op = false;  // by an op of a backward or optimizer phase, outside a replay
  bool held_by_slot = false;         // a slot held it at some time
  std::optional<NameId> maker;       // name of the op that made it
};

/// The storages of the trace: which are alive, how often each was written, and which tensor lies
/// on which. Of one that was released long ago it knows only that, and how often it was written: a
/// trace may make far more storages than memory holds.
class StorageBook {
 public:
  /// The storage with the trace's own `number`, first seen now or earlier.
  StorageId at(std::int64_t number);
  std::optional<StorageId> find(std::int64_t number) const;
  std::optional<StorageId> of_tensor(std::int64_t tensor) const;
  void lies_on(std::int64_t tensor, StorageId storage) { tensors_.set(tensor, storage.number()); }

  /// What the trace calls it; storages keep their name past the release, until they are forgotten.
  std::optional<NameId> name(StorageId id) const;
  void set_name(StorageId id, std::optional<NameId> name);
  /// How often it was written, over all its lives.
  std::uint32_t version(StorageId id) const;
  /// Event of the last write, if any and not forgotten.
  std::optional<std::int64_t> written_seq(StorageId id) const;
  /// It lived and was released, and is not alive again.
  bool is_released(StorageId id) const { return releases_.contains(id.number()); }
  std::optional<ReleaseMoment> released(StorageId id) const { return releases_.find(id.number()); }
  LiveStorage* live(StorageId id);
  const LiveStorage* live(StorageId id) const { return const_cast<StorageBook*>(this)->live(id); }

  LiveStorage& allocate(StorageId id, std::int64_t bytes, std::int64_t seq,
                        std::optional<std::int64_t> rank = std::nullopt);
  void release(StorageId id, std::int64_t seq);
  void write(StorageId id, std::int64_t seq);
  void set_role(StorageId id, Role role);

  /// Bytes of all that is alive on the rank (none: on all of them) and not outside.
  std::int64_t live_bytes(std::optional<std::int64_t> rank = std::nullopt) const;
  /// Those alive, in no order of meaning; sort what you make of it.
  const std::vector<LiveStorage>& all_live() const { return live_; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;
  struct Row {
    std::int64_t written_seq = -1;
    std::uint32_t version = 0;
    std::uint32_t live = none;
    std::optional<NameId> name;
  };

  void count(const LiveStorage& storage, bool is_alive);
  void forget(std::int64_t number);
  std::uint32_t old_version(std::int64_t number) const;
  void set_old_version(std::int64_t number, std::uint32_t version);

  IdTable tensors_;
  FlatMap<Row> rows_;  // by number; of those that live or have been released not long ago
  ReleaseLog releases_;
  IdTable old_versions_;  // of those without a row that were written: number → the same shifted by
                          // the version
  std::vector<LiveStorage> live_;
  ByteTotal live_bytes_;
  FlatMap<ByteTotal> of_rank_;  // likewise, by rank
};

}  // namespace remat
