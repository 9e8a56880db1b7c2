#pragma once

#include <cstdint>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// The lists with an R ahead of each B and DX, `distance` places earlier than right before it.
/// Places are counted in the lists without R's, an overlapped pair being one; an R stays behind its
/// own F, and R's that come to one place keep the order of their backwards. Source: cli.md.
PipelineLists with_replays(const PipelineLists& lists, std::int64_t distance);

}  // namespace remat
