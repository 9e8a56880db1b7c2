#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// The record of one call of a checkpointed region (protocols.md P1).
struct CheckpointFrame {
  std::int64_t number = 0;
  std::size_t forward = 0;  // which one of the program
  std::size_t begin = 0;    // the region's statement
  std::optional<std::int64_t> microbatch;
  std::optional<std::int64_t> invocation;
  bool early_stop = true;
  bool forward_done = false;
  std::int64_t n_alive = 0;
  std::int64_t rng_position = 0;
  std::vector<Holder> holders;
  std::vector<SavedSlot> inputs;
  std::vector<Tensor> captured;
  std::vector<std::uint32_t> captured_versions;
  std::vector<std::uint32_t> param_versions;
  std::vector<ReplaySession> sessions;
  OpCache cache;

  ReplaySession& session(const ReplayKey& key) {
    for (ReplaySession& known : sessions)
      if (known.key == key) return known;
    sessions.emplace_back().key = key;
    return sessions.back();
  }
};

}  // namespace remat
