#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/program.hpp"
#include "model/ring.hpp"
#include "sim/event_log.hpp"
#include "sim/ledger.hpp"

// What parts of a rank hand one another.

namespace remat {

/// How a stretch of statements ended.
enum class Flow : std::uint8_t {
  done,
  stopped,  // early stop: the replay needs no more
  failed    // an error was raised
};

/// As many as one op has, without memory of their own where that is few.
template <typename T>
using Few = boost::container::small_vector<T, 4>;
using Tensors = Few<Tensor>;
template <typename T>
std::span<T> span_of(Few<T>& few) {
  return {few.data(), few.size()};
}

/// What backward spends on an op for so many gradients.
Duration backward_cost(const OpStatement& op, std::size_t n_gradients);

/// A recompute session in scope.
struct OpenSession {
  ReplayKey key;
  bool retains = false;  // hands out again what was read
};

/// How the old element and the new one combine where a write leaves a part of the storage alone.
struct PartialWrite {
  Ring old_part;
  Ring new_part;
};
/// By the op's seed.
PartialWrite partial_write(std::uint64_t seed);

/// A forward call of an excluded region and the replay's that stands for it, by their numbers.
struct MatchedCalls {
  std::int64_t entry = 0;
  std::int64_t replayed = 0;
};

/// The save units that ask for an op to be kept, by their places.
using AskingUnits = std::vector<std::size_t>;

/// How often, and how far, a rank has come with what it counts.
struct RankCounts {
  std::map<std::string, std::int64_t, std::less<>> invocations;  // by region
  /// By buffer, micro-batch and whether in a replay: how often its holes have been made.
  std::map<std::tuple<std::uint32_t, std::int64_t, bool>, std::uint64_t> hole_fills;
  std::map<std::int64_t, std::int64_t> raised;  // by the number of what raises
  std::int64_t rng_position = 0;
  std::int64_t hook_calls = 0;
  std::int64_t replay_peak = 0;  // the most that one added to what was alive when it began
};

/// What has been seen of save units.
struct UnitBook {
  /// Units that have kept something in a layer of this forward, by owners that ran.
  std::map<std::string, std::set<std::size_t>> kept;
};

/// What a replay has for a slot.
struct Brought {
  const WrapperBegin::Input* from = nullptr;  // none: the call has no such argument
  Tensor tensor;
  std::string_view code = {};  // of the error that it would be to take it; empty: none
  std::string why = {};
};

}  // namespace remat
