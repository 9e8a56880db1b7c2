#pragma once

#include "sim/expectation.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// What a legal case's trace must show, computed from program, protocol and schedule alone, never
/// by the simulator that it judges: how often each op runs in a step, the bytes alive after the
/// last forward, and a bound on those at any time. Formulas: protocols.md §2 (R and T of P1, P2 and
/// P10), over the order of phases. What a schedule with split backwards leaves open is not told.
Expectation expectation_of(const Scenario& scenario);

}  // namespace remat
