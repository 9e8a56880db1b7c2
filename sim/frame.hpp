#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/flat_map.hpp"
#include "schedules/save_units.hpp"
#include "sim/tape.hpp"

namespace remat {

/// What forward packed in a slot that holds no tensor.
struct Holder {
  bool alive = true;
  ValueId value{0};
  Ring element;  // the tensor's value
};

/// What one session's replay put in a slot.
struct Refilled {
  Tensor tensor;
  std::uint32_t version = 0;
  bool filled = false;
  bool handed_out = false;
};

/// The replay of a frame for one key, and what it refilled.
struct ReplaySession {
  ReplayKey key;
  std::int64_t n_packed = 0;
  bool replayed = false;
  bool metadata_equal = true;
  bool surplus_passed = false;
  std::vector<Refilled> slots;
};

/// What a selective policy decided for one call of an op.
struct CacheEntry {
  bool kept = false;
  bool consumed = false;
  std::vector<Tensor> outputs;
  std::vector<std::uint32_t> versions;
  std::int64_t rng_after = 0;  // where the generator stood once the op had run
};
/// By the op's name, in the order of its calls.
using OpCache = std::map<std::string, std::vector<CacheEntry>, std::less<>>;

/// A saved input of an excluded region that forward did not keep (protocols.md P4).
struct InputSlot {
  const WrapperBegin* wrapper = nullptr;
  std::int64_t call = 0;  // of forward
  std::size_t input = 0;  // which of the wrapper's it comes from
  ValueId value{0};       // what was packed
  Ring element;
  std::uint32_t entered_version = 0;  // of the input, when the call was entered
  std::int64_t entered_begin = 0;     // likewise: where its storage's tensors lie
  std::int64_t number = 0;
  bool alive = true;
  bool filled = false;
  bool was_filled = false;  // at least once
  std::uint32_t fill_version = 0;
  Tensor tensor;
};

/// What one forward call of an excluded region left for the replay.
struct WrapperEntry {
  std::int64_t call = 0;
  std::size_t n_leaves = 0;     // of what it returned
  std::vector<Tensor> outputs;  // as many; none where nobody kept them
  std::vector<std::uint32_t> versions;
  std::vector<bool> requires_grad;  // by kept output, before its boundary
  std::vector<NodeRef> nodes;       // of the outputs, where the entry holds on to them
  std::vector<bool> has_boundary;   // by leaf
  std::vector<std::uint32_t> slots;
  std::int64_t rng_after = 0;
};

/// The calls of one excluded region within a frame.
struct WrapperCalls {
  std::int64_t n_forward = 0;
  std::int64_t n_replayed = 0;
  std::int64_t n_in_replay = 0;  // of the replay that is running
  std::deque<WrapperEntry> entries;
  /// What a call raised in forward, and where the generator stood then.
  struct Raised {
    std::string type;
    std::int64_t rng_after = 0;
  };
  std::map<std::int64_t, Raised> raised;  // by call
};

/// What a saved region of torch_remat left for the replay (protocols.md P7).
struct SaveRecord {
  struct Output {
    Tensor tensor;  // where a replay will read it
    std::uint32_t version = 0;
    bool is_persisted = false;
    bool requires_grad = false;
  };
  const WrapperBegin* region = nullptr;
  std::vector<std::uint32_t> slots;
  std::vector<Output> outputs;  // as many as the region returned
  std::int64_t rng_after = 0;
};

/// The saved regions of one call of a checkpointed region.
struct SaveRecords {
  /// One output of a record.
  struct Place {
    SaveRecord* record = nullptr;
    std::size_t output = 0;
  };
  std::map<std::string, SaveRecord, std::less<>> by_name;
  std::map<std::int64_t, std::vector<Place>> by_origin;  // by storage: what lies there
  std::set<std::string, std::less<>> names;              // met in this run of the body
  std::vector<ValueId> triggers;  // what the region returned through a recompute boundary
};

/// An output that a replay will not have: nobody kept it.
struct UnkeptOutput {
  const WrapperBegin* wrapper = nullptr;
  std::int64_t call = 0;
  std::size_t leaf = 0;
};

/// The record of one call of a checkpointed region (protocols.md P1).
struct CheckpointFrame {
  std::int64_t number = 0;
  std::size_t forward = 0;  // which one of the program
  std::size_t begin = 0;    // the region's statement
  std::optional<std::int64_t> invocation;
  bool early_stop = true;
  bool forward_done = false;
  bool is_replaying = false;  // what it lets go of on the way may have been the last to ask for it
  std::int64_t n_alive = 0;
  std::int64_t rng_position = 0;
  std::vector<Holder> holders;
  std::vector<SavedSlot> inputs;
  std::vector<Tensor> captured;
  std::vector<std::uint32_t> captured_versions;
  std::vector<std::uint32_t> param_versions;
  std::vector<ReplaySession> sessions;
  std::set<std::uint32_t> flipped;  // of the walk that called the region
  OpCache cache;
  UnitState units_at_end;                                          // of forward
  std::set<std::size_t> keeping_units;                             // that have kept something in it
  std::vector<std::pair<std::size_t, std::string>> unkept_writes;  // unit and op: asked for
  std::optional<std::size_t> offload_group;                        // that calls the region
  bool is_compiled = false;  // the code that calls the region is compiled, and it with that
  std::map<std::string, WrapperCalls, std::less<>> wrappers;  // by name
  std::vector<InputSlot> input_slots;
  std::int64_t n_input_slots_alive = 0;
  // What came out of excluded regions: tensor objects, and storages that their bodies made.
  IdSet save_objects;
  IdSet save_storages;
  FlatMap<UnkeptOutput> unkept;  // by tensor object
  SaveRecords saves;
  FlatMap<UnkeptOutput> placeholders;     // by storage: what stands in for outputs of saved regions
  std::vector<Tensor> captured_by_fault;  // of RankFault::arguments_held

  /// Nobody can ask for anything of it any more.
  bool is_over() const {
    return forward_done && !is_replaying && n_alive == 0 && n_input_slots_alive == 0;
  }

  ReplaySession& session(const ReplayKey& key) {
    for (ReplaySession& known : sessions)
      if (known.key == key) return known;
    sessions.emplace_back().key = key;
    return sessions.back();
  }
};

}  // namespace remat
