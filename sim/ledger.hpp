#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "model/memory_levels.hpp"
#include "model/program.hpp"
#include "model/ring.hpp"

namespace remat {

class EventLog;

/// Why somebody holds a storage (protocols.md §1.1). A storage with several owners counts for the
/// first of their classes in this order.
enum class OwnerClass : std::uint8_t {
  param,
  input,
  grad,
  region_input,
  outer_saved,
  excl_saved,   // saved inside an excluded region
  excl_output,  // kept to be served to a replay
  slot,         // brought by a replay to an excluded region's slot
  persisted,    // an output of a region of torch_remat, kept for the replay
  sac_cache,
  recomputed,
  forward_tmp,
  replay_tmp,
  nobody  // looks at the storage and does not keep it alive
};
inline constexpr std::size_t owner_class_count = 13;
std::string_view name_of(OwnerClass owner);

/// Bytes alive by owner class. Parameters and model inputs are left out of `total`.
struct BytesByClass {
  std::array<std::int64_t, owner_class_count> by_class{};
  std::int64_t total = 0;
};

/// Where a storage's bytes are, seen from the device (protocols.md P11).
enum class Residence : std::uint8_t { device, on_the_way_out, away, on_the_way_in };

/// Bytes of one level that offloaded storages wait on.
struct LevelBytes {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  std::int64_t sent = 0;      // by copies that have ended
  std::int64_t returned = 0;  // likewise, back
  friend bool operator==(const LevelBytes&, const LevelBytes&) = default;
};
using BytesByLevel = std::array<LevelBytes, memory_level_count>;

/// All storages of a rank: bytes, owners, versions and exact elements. A storage dies when its last
/// owner leaves.
class Ledger {
 public:
  explicit Ledger(EventLog& log) : log_(&log) {}

  /// A new storage without an owner yet. `maker` names the op that made it.
  std::uint32_t allocate(std::int64_t bytes, BufferRole role, std::string_view maker);
  void own(std::uint32_t storage, OwnerClass owner);
  void disown(std::uint32_t storage, OwnerClass owner);

  std::int64_t number(std::uint32_t storage) const { return rows_[storage].number; }
  std::int64_t bytes(std::uint32_t storage) const { return rows_[storage].bytes; }
  std::uint32_t version(std::uint32_t storage) const { return rows_[storage].version; }
  Ring element(std::uint32_t storage) const { return rows_[storage].element; }
  /// What lies in the holes of the tensor that the storage was made for; 0 where it has none.
  Ring holes(std::uint32_t storage) const { return rows_[storage].holes; }
  void set_holes(std::uint32_t storage, Ring holes) { rows_[storage].holes = holes; }
  void set_element(std::uint32_t storage, Ring element) { rows_[storage].element = element; }
  /// Elements from the storage's start to where its tensors lie (OpStatement::replay_offset).
  std::int64_t begin(std::uint32_t storage) const { return rows_[storage].begin; }
  void set_begin(std::uint32_t storage, std::int64_t begin) { rows_[storage].begin = begin; }
  void bump_version(std::uint32_t storage) { ++rows_[storage].version; }

  // Offload: out, and back in. Bytes on the way count as the device's; a copy whose storage dies is
  // given up.
  Residence residence(std::uint32_t storage) const { return rows_[storage].residence; }
  void begin_copy_out(std::uint32_t storage, MemoryLevel level);
  /// Its bytes leave the device; who owns it goes on owning it.
  void end_copy_out(std::uint32_t storage);
  /// Room for it is made on the device.
  void begin_copy_in(std::uint32_t storage);
  void end_copy_in(std::uint32_t storage);
  const BytesByLevel& levels() const { return levels_; }
  /// The storage of that number is alive, and lies there.
  bool is_alive(std::uint32_t storage, std::int64_t number) const {
    return rows_[storage].number == number && rows_[storage].n_owners > 0;
  }
  /// Somebody keeps it for backward or for a replay.
  bool is_kept(std::uint32_t storage) const;

  /// Nobody but one owner holds the storage.
  bool has_one_owner(std::uint32_t storage) const { return rows_[storage].n_owners == 1; }

  const BytesByClass& live() const { return live_; }
  const BytesByClass& at_peak() const { return at_peak_; }
  /// The most that was ever counted for the class.
  std::int64_t most_of(OwnerClass owner) const { return most_[static_cast<std::size_t>(owner)]; }
  /// Storages that are alive, and places for storages: as many as ever lived at one time.
  std::size_t n_alive() const { return n_places() - free_rows_.size(); }
  std::size_t n_places() const { return rows_.size(); }
  /// The largest total since the last call of `begin_peak`.
  std::int64_t recent_peak() const { return recent_peak_; }
  void begin_peak() { recent_peak_ = live_.total; }

 private:
  static constexpr std::uint8_t unowned = 0xff;
  struct Row {
    std::int64_t number = 0;
    std::int64_t bytes = 0;
    Ring element;
    Ring holes;
    std::int64_t begin = 0;
    std::uint32_t version = 0;
    std::uint32_t n_owners = 0;
    std::array<std::uint32_t, owner_class_count> owners{};
    std::uint8_t counted_as = unowned;
    bool is_outside = false;
    Residence residence = Residence::device;
    MemoryLevel level = MemoryLevel::host;
    bool counts() const { return !is_outside && residence != Residence::away; }
  };
  LevelBytes& level_of(const Row& row) { return levels_[static_cast<std::size_t>(row.level)]; }
  void count(const Row& row);
  void admit(const Row& row);
  void recount(Row& row);
  void note_peak();

  EventLog* log_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_rows_;
  BytesByClass live_;
  BytesByClass at_peak_;
  std::array<std::int64_t, owner_class_count> most_{};
  std::int64_t recent_peak_ = 0;
  BytesByLevel levels_{};
};

/// One owner's hold on a storage, given up when it goes.
class Owned {
 public:
  Owned() = default;
  Owned(Ledger& ledger, std::uint32_t storage, OwnerClass owner)
      : ledger_(&ledger), storage_(storage), owner_(owner) {
    if (owner_ != OwnerClass::nobody) ledger_->own(storage_, owner_);
  }
  Owned(Owned&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        storage_(other.storage_),
        owner_(other.owner_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(storage_, other.storage_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Owned() { drop(); }

  explicit operator bool() const { return ledger_ != nullptr; }
  std::uint32_t storage() const { return storage_; }
  /// Another owner's hold on the same storage; who only looks at it cannot give it to others.
  Owned shared_as(OwnerClass owner) const {
    if (ledger_ == nullptr) return Owned();
    return Owned(*ledger_, storage_, owner_ == OwnerClass::nobody ? owner_ : owner);
  }
  /// Gives it up now.
  void drop() {
    Ledger* ledger = std::exchange(ledger_, nullptr);
    if (ledger != nullptr && owner_ != OwnerClass::nobody) ledger->disown(storage_, owner_);
  }

 private:
  Ledger* ledger_ = nullptr;
  std::uint32_t storage_ = 0;
  OwnerClass owner_ = OwnerClass::forward_tmp;
};

/// A tensor object of the run: which value of the program it is and where its bytes lie.
struct Tensor {
  Owned hold;
  ValueId value{0};
  bool is_astray = false;  // looks at the storage beside where its value lies: only by a fault
  std::int64_t id = 0;     // its identity in the trace

  Tensor() = default;
  Tensor(Owned held, ValueId of, std::int64_t as) : hold(std::move(held)), value(of), id(as) {}
  Tensor shared_as(OwnerClass owner) const {
    Tensor shared(hold.shared_as(owner), value, id);
    shared.is_astray = is_astray;
    return shared;
  }
};

}  // namespace remat
