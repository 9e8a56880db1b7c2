#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/program.hpp"
#include "model/ring.hpp"
#include "sim/event_log.hpp"
#include "sim/ledger.hpp"

// What parts of a rank hand one another.

namespace remat {

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

/// A forward call of an excluded region and the replay's that stands for it, by their numbers.
struct MatchedCalls {
  std::int64_t entry = 0;
  std::int64_t replayed = 0;
};

/// The save units that ask for an op to be kept, by their places.
using AskingUnits = std::vector<std::size_t>;

/// What has been told and seen of save units.
struct UnitBook {
  std::set<Diagnosis> told;
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
