#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: a draw in a replay starts where forward's did, and the generator is put back
/// afterwards. Source: protocols.md I-30; rules N1, N2 of docs/trace-format.md.
std::unique_ptr<Invariant> rng_position();

}  // namespace remat
