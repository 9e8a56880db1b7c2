#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: what is read is alive: a storage is released once, after its last reader, and a slot
/// is not read after its owner is gone. Source: protocols.md I-25; rules U1–U5 of
/// docs/trace-format.md.
std::unique_ptr<Invariant> no_use_after_free();

}  // namespace remat
