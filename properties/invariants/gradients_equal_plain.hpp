#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: every gradient, and which are missing, equals that of the run without checkpointing,
/// and a refilled value equals the packed one. Source: protocols.md I-1 to I-4, I-11; rules G1, G2
/// of docs/trace-format.md.
std::unique_ptr<Invariant> gradients_equal_plain();

}  // namespace remat
