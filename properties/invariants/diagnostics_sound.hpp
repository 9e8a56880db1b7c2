#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: what save units keep too much or too little is told once for each model, and nothing
/// else is. Source: protocols.md I-28, I-38 to I-40; rule C4 of docs/trace-format.md.
std::unique_ptr<Invariant> diagnostics_sound();

}  // namespace remat
