#pragma once

#include <cstddef>
#include <string>

#include "sim/pipeline_run.hpp"

namespace remat {

/// The run as one line for each rank, time to scale, of at most `columns` columns: each action's
/// letter (F, B, DX as I, DW as W, R; small for other chunks than the rank's first) and micro-batch
/// as far as its columns reach, then dashes; idle time is dots. Plain ASCII.
std::string schedule_picture(const PipelineLists& lists, const PipelineRun& run,
                             std::int64_t makespan, std::size_t columns);

}  // namespace remat
