#pragma once

#include <vector>

#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/slot_plan.hpp"

namespace remat {

/// When a rank takes the first micro-batch: the slots of F and DX of its two chunks, in the order
/// of VStep. Each micro-batch after it comes six slots later.
struct BuildingBlock {
  std::int32_t forward_down = 0;
  std::int32_t forward_up = 0;
  std::int32_t dx_up = 0;
  std::int32_t dx_down = 0;
};

/// Repeats the building block of each rank, and packs the ends. Controllable Memory (2405.15362),
/// §3.
PipelineLists repeated_blocks(const std::vector<BuildingBlock>& blocks, std::int32_t microbatches);

}  // namespace remat
