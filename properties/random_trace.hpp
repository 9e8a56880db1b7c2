#pragma once

#include "properties/choice_tape.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A trace that the format allows, of at most a hundred events of any kind, known and unknown, with
/// any fields: every id is described before it is used, and that is all the sense it makes. An
/// empty tape gives a bare header.
Trace random_trace(ChoiceTape& tape);

}  // namespace remat
