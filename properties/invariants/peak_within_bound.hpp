#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: live bytes stay within the bound that the header states, at every moment and after
/// forward. Source: protocols.md I-31 to I-33; rule P1 of docs/trace-format.md.
std::unique_ptr<Invariant> peak_within_bound();

}  // namespace remat
