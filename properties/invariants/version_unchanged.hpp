#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: what is read is at the version (writes to its storage so far) at which it was kept or
/// filled, and a replay reads what forward read. By storage, so a write through any view counts.
/// Source: protocols.md I-24, I-29; rules K1–K6 of docs/trace-format.md.
std::unique_ptr<Invariant> version_unchanged();

}  // namespace remat
