#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Invariant: a slot is filled once and handed out once for each session (again where the session
/// retains), and what is handed out is what was filled in; an excluded region's slot and cache
/// entry serve their own call, once; a place that holds one entry is not filled again before it is
/// read. Source: protocols.md I-17, I-19, I-20; rules S2–S6, X3, X8, X9 of docs/trace-format.md.
std::unique_ptr<Invariant> slot_used_once();

}  // namespace remat
