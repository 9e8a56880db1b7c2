#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: two accesses to a storage on different streams, one of them a write, are ordered by
/// an event that one stream records and the other waits for. Source: protocols.md I-48; rule D4 of
/// docs/trace-format.md.
std::unique_ptr<Invariant> stream_order();

}  // namespace remat
