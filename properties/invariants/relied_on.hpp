#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/flat_map.hpp"
#include "properties/invariants/facts.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A storage as it was when something was kept of it.
struct Snapshot {
  StorageId storage{0};
  std::uint32_t version = 0;
  std::int64_t seq = 0;
};

/// What outlives the step may be written by anybody, and so may what is not known to be alive.
inline bool is_external(const Facts& facts, StorageId storage) {
  const LiveStorage* live = facts.storages().live(storage);
  return live == nullptr || live->role == Role::external;
}

/// What an output was kept under: the op and the number of its call, or the region and the output.
using KeptKey = std::pair<std::uint32_t, std::int64_t>;

/// What one call of a region relies on until its replays.
struct ReliedOn {
  FlatMap<Snapshot> reads;  // storage → its first read in forward (K4)
  std::vector<StorageId> read_order;
  IdSet writes;  // storages that forward itself wrote
  std::vector<Snapshot> inputs;
  std::map<KeptKey, std::vector<Snapshot>> kept;
};

/// The calls by their frames.
class ReliedOnBook {
 public:
  /// Of a sac_decide or sac_hit.
  static KeptKey cache_key(const EventView& event) { return key(event, Field::op, Field::idx); }
  /// Of a remat_persist or remat_serve.
  static KeptKey output_key(const EventView& event) {
    return key(event, Field::region, Field::output);
  }

  const ReliedOn* find(std::int64_t frame) const { return calls_.find(frame); }
  ReliedOn& of(std::int64_t frame) { return calls_[frame]; }
  void forget(std::int64_t frame) { calls_.erase(frame); }

  /// Forward of the call reads a storage that it did not make.
  void remember_read(const EventView& event, const Facts& facts, std::int64_t frame,
                     StorageId storage) {
    ReliedOn& call = calls_[frame];
    if (call.reads.contains(storage.number())) return;
    call.reads[storage.number()] = snapshot(event, facts, storage);
    call.read_order.push_back(storage);
  }

  /// The event is an inputs_save.
  void keep_inputs(const EventView& event, const Facts& facts) {
    if (!facts.frame()) return;
    ReliedOn& call = calls_[*facts.frame()];
    for (std::size_t i = 0; i < event.list_size(Field::tensors); ++i) {
      const auto storage = listed_storage(event, facts, i);
      if (storage && !facts.is_a_slot_of_the_caller(*storage))
        call.inputs.push_back(snapshot(event, facts, *storage));
    }
  }

  /// The event is a sac_decide that keeps.
  void keep_cached(const EventView& event, const Facts& facts) {
    if (facts.bodies().empty()) return;
    std::vector<Snapshot>& kept = calls_[facts.bodies().front().frame].kept[cache_key(event)];
    kept.clear();
    for (std::size_t i = 0; i < event.list_size(Field::tensors); ++i) {
      const auto storage = listed_storage(event, facts, i);
      if (storage) kept.push_back(snapshot(event, facts, *storage));
    }
  }

  /// The event is a remat_persist.
  void keep_output(const EventView& event, const Facts& facts) {
    const auto tensor = event.tensor(Field::tensor);
    if (!facts.enclosing_frame() || !tensor || !tensor->storage) return;
    if (const auto storage = facts.storages().find(*tensor->storage))
      calls_[*facts.enclosing_frame()].kept[output_key(event)] = {snapshot(event, facts, *storage)};
  }

  /// Something that the call relies on and that was written since: a kept output first, then what
  /// forward read and did not write itself.
  std::optional<Snapshot> written_since(const Facts& facts, std::int64_t frame) const {
    std::optional<Snapshot> cause;
    const auto consider = [&](const Snapshot& kept) {
      if (!cause && facts.storages().version(kept.storage) != kept.version) cause = kept;
    };
    facts.excluded_calls().each_entry(frame, [&](NameId, const ForwardCall& call) {
      for (const KeptOutput& output : call.entry->outputs)
        consider({output.storage, output.version, call.entry->put_seq});
    });
    const ReliedOn* call = find(frame);
    if (call == nullptr) return cause;
    for (const auto& [key, snapshots] : call->kept) {
      for (const Snapshot& kept : snapshots)
        consider(kept);
    }
    for (const StorageId storage : call->read_order) {
      if (!call->writes.contains(storage.number()) && !is_external(facts, storage))
        consider(*call->reads.find(storage.number()));
    }
    return cause;
  }

 private:
  static KeptKey key(const EventView& event, Field name, Field number) {
    const auto id = event.name(name);
    return {id ? id->index() : 0xffffffff, event.integer(number).value_or(-1)};
  }
  static Snapshot snapshot(const EventView& event, const Facts& facts, StorageId storage) {
    return {storage, facts.storages().version(storage), event.seq()};
  }
  /// Storage of the i-th of `tensors`, which lists tensors or their ids.
  static std::optional<StorageId> listed_storage(const EventView& event, const Facts& facts,
                                                 std::size_t i) {
    if (!event.lists_tensors(Field::tensors))
      return facts.storages().of_tensor(event.list_item(Field::tensors, i));
    const auto number = event.tensor_item(Field::tensors, i).storage;
    return number ? facts.storages().find(*number) : std::nullopt;
  }

  FlatMap<ReliedOn> calls_;
};

}  // namespace remat
