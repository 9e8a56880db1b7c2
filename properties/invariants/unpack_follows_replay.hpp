#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: a slot that holds no tensor is read only after a replay (or a reload) of the same
/// session filled it. Source: protocols.md I-12; rules F1, F5, X2 of docs/trace-format.md.
std::unique_ptr<Invariant> unpack_follows_replay();

}  // namespace remat
