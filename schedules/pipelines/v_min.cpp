#include "schedules/pipelines/controllable_memory.hpp"

namespace remat {

PipelineLists v_min(const PipelineShape& shape) {
  const std::int32_t ranks = shape.ranks;
  // A number of ranks that three divides would put two steps into slots that are equal modulo six.
  const std::int32_t shift = ranks % 3 == 0 ? 2 : 0;
  std::vector<BuildingBlock> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    blocks.push_back({.forward_down = rank,
                      .forward_up = 2 * ranks - 1 - rank,
                      .dx_up = 2 * ranks + shift + rank,
                      .dx_down = 4 * ranks - 1 + shift - rank});
  }
  return repeated_blocks(blocks, shape.microbatches);
}

}  // namespace remat
