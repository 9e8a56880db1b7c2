#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/program.hpp"
#include "model/shapes.hpp"
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
  // What hooks raise that the next op's saves go through, when they are packed and unpacked.
  const Raise* in_pack = nullptr;
  const Raise* in_unpack = nullptr;
  std::optional<std::size_t> offload_group;  // that runs
  // Storages that a served collective should have written, by their numbers, and which.
  std::map<std::int64_t, const OpStatement*> unwritten;
  std::set<std::uint32_t> flipped;  // values that require grad where the program says no, or not
};

/// What autograd gets of an op.
struct Taped {
  bool makes_node = false;
  std::span<const Save> saves;
};

/// What a replay is, for the trace and the generator.
struct ReplayBracket {
  std::size_t forward = 0;
  std::size_t begin = 0;  // the region's statement
  std::optional<std::int64_t> invocation;
  std::optional<std::int64_t> frame;  // its number; none: a reentrant region
  ReplayKey key;
  std::int64_t rng_position = 0;  // where forward's draws began
};

/// What an op makes of inputs whose shapes are not forward's: nothing special where they are.
struct CarriedShapes {
  bool raises = false;  // once what it saves before it runs is packed
  std::vector<Shape> made;
};

}  // namespace remat
