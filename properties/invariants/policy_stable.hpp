#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: the keep-or-recompute decision of an op call is the same in forward and in a replay,
/// and on all ranks of a group. Source: protocols.md I-42; rule C3 of docs/trace-format.md.
std::unique_ptr<Invariant> policy_stable();

}  // namespace remat
