#pragma once

#include <string>

#include "traces/trace.hpp"

namespace remat {

/// What a prediction may read of a recording: header, setup and forward, the borders of phases, and
/// where frames know sessions, what the caller does with those and writes in an optimizer's step.
/// Rules of the accepted cut; sequence numbers stay. Written to `path` and read from there.
Trace forward_part(const Trace& recording, const std::string& path);

}  // namespace remat
