#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: all ranks of a group issue the same collectives in the same order; a replay elides
/// none on some ranks only. Source: protocols.md I-26, I-27; rule D1 of docs/trace-format.md.
std::unique_ptr<Invariant> collective_order();

}  // namespace remat
