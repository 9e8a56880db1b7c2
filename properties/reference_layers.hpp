#pragma once

#include <cstddef>
#include <set>

#include "sim/scenario.hpp"

namespace remat {

/// Checkpointed regions that the scenario's `recompute_ratio` leaves out, by the statements at
/// which they end; read off the statements alone (protocols.md I-44).
std::set<std::size_t> reference_plain_layers(const Scenario& scenario, const Program& program);

}  // namespace remat
