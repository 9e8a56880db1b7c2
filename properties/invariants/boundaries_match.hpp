#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Boundaries and tensor leaves of an excluded region agree between forward and replay, and
/// placeholders are never read as data. Rules X9 and X12 to X15 of docs/trace-format.md.
std::unique_ptr<Invariant> boundaries_match();

}  // namespace remat
