#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace remat {

/// A unit or an excluded region's call came to its end: `return`, or `end` in hand-made cases.
inline bool returned(const EventView& event) {
  const std::string_view how = event.text(Field::ended_by);
  return how == "return" || how == "end";
}

/// It was left by an error; an early stop is none.
inline bool raised(const EventView& event) {
  const std::string_view how = event.text(Field::ended_by);
  return !how.empty() && !returned(event) && how != "_StopRecomputationError";
}

}  // namespace remat
