#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: at a step's end nothing of the step is owned but parameters, gradients and what the
/// caller holds, and scopes are balanced. Source: protocols.md I-18, I-34, I-36; rules L1–L4 of
/// docs/trace-format.md.
std::unique_ptr<Invariant> no_leak_at_step_end();

}  // namespace remat
