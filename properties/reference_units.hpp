#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "sim/scenario.hpp"

namespace remat {

/// What the save units of a scenario keep, read off its statements alone (protocols.md P8, P9).
struct ReferenceUnits {
  std::set<std::size_t> kept;         // statements: ops whose outputs are kept
  std::set<std::string> without_any;  // models whose regions keep nothing at all
};

ReferenceUnits reference_units(const Scenario& scenario, const Program& program);

}  // namespace remat
