#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: what a replay saves matches what forward saved: in order, as far as the replay goes,
/// with dtype, shape, stride, offset and device; and the ops that make new bytes come in forward's
/// order. Source: protocols.md I-21, I-23; rules F2–F4, S8 of docs/trace-format.md.
std::unique_ptr<Invariant> saved_lists_match();

}  // namespace remat
