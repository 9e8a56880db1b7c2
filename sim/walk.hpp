#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "model/program.hpp"
#include "schedules/save_units.hpp"
#include "sim/environment.hpp"
#include "sim/ledger.hpp"

namespace remat {

struct WrapperCall;

/// Where a walk's packs go.
enum class Packs : std::uint8_t {
  plain,
  holders,
  refills,
  excluded  // in an excluded region's body: nothing for the frame around it
};

/// One run of statements: a forward, a replay, or a reentrant region's replay.
struct Walk {
  std::size_t forward = 0;
  Environment variables;
  Packs packs = Packs::plain;
  std::uint32_t frame = 0;  // of holders and refills
  ReplayKey key;
  bool is_replay = false;
  bool grad = true;
  std::optional<std::uint32_t> cache_of;                     // frame whose policy applies
  bool serves = false;                                       // … and in a replay of it
  WrapperCall* wrapper = nullptr;                            // whose body runs
  std::map<std::string, std::size_t, std::less<>> op_calls;  // for the cache
  UnitState units;           // of the checkpointed region that is run
  bool is_compiled = false;  // what runs is compiled into one
  OwnerClass owner = OwnerClass::forward_tmp;
  std::set<std::uint32_t> flipped;  // values that require grad where the program says no, or not
};

/// What autograd gets of an op.
struct Taped {
  bool makes_node = false;
  std::span<const Save> saves;
};

}  // namespace remat
