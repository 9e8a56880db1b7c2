#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: every op and side effect ran as often as the policy says, and an effect of forward
/// does not run again in a replay. Source: protocols.md I-5 to I-8, I-54; rules C1, C2 of
/// docs/trace-format.md.
std::unique_ptr<Invariant> op_counts();

}  // namespace remat
