#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: every rank finishes: none waits in a collective or a receive that another never
/// answers. Source: protocols.md I-27; rules D2, D3 of docs/trace-format.md.
std::unique_ptr<Invariant> no_deadlock();

}  // namespace remat
