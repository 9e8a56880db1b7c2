#pragma once

#include <cstdint>

#include "sim/expectation.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// What an effect is expected to do in replays.
enum class ReplayedEffects : std::uint8_t {
  repeat,       // it runs as often as an op would
  are_findings  // nothing is expected of it: `op_counts` tells what a replay repeats (C2)
};

/// What a legal case's trace must show, computed from program, protocol and schedule alone, never
/// by the simulator that it judges: how often each op runs in a step, the bytes alive after the
/// last forward, and a bound on those at any time. Formulas: protocols.md §2 (R and T of P1, P2 and
/// P10), over the order of phases. What a schedule with split backwards leaves open is not told.
Expectation expectation_of(const Scenario& scenario,
                           ReplayedEffects effects = ReplayedEffects::are_findings);

}  // namespace remat
