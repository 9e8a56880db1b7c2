#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_place.hpp"
#include "model/op_costs.hpp"
#include "model/program.hpp"

namespace remat {

/// What a scenario says that its statements depend on.
struct ProgramReading {
  /// Names of op kinds whose outputs a selective policy keeps; a statement's own `keep` wins.
  std::vector<std::string> kept_ops;
  /// Save units keep something of that model's regions, by owner; without a word of none's.
  std::function<bool(std::string_view owner)> keeps_units_of = {};
  OpRates rates;
  std::vector<RankGroup> groups;  // of ranks that issue collectives together
  std::uint32_t rank = 0;         // that the program is read for
  std::uint32_t n_ranks = 1;
};

/// The policy keeps outputs of ops of that kind.
bool is_kept(const ProgramReading& reading, std::string_view kind);

/// Reads the `program` of a scenario: one forward, its tensors and parameters (docs/cli.md has the
/// statements), or a builder's. Throws InputError with line and pointer for what cannot be: unknown
/// kinds, shapes that do not go together, names used before they are made, bodies that call
/// themselves, saving what does not exist, negative costs.
Program read_program(const JsonPlace& place, const ProgramReading& reading);

}  // namespace remat
