#include "schedules/pipelines/controllable_memory.hpp"

namespace remat {

PipelineLists v_half(const PipelineShape& shape) {
  const std::int32_t ranks = shape.ranks;
  // An even number of ranks would put two steps of a rank into slots that are equal modulo six.
  const std::int32_t shift = ranks % 2 == 0 ? 3 : 0;
  std::vector<BuildingBlock> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    blocks.push_back({.forward_down = 2 * rank,
                      .forward_up = 3 * ranks - 2 - rank,
                      .dx_up = 3 * ranks - 1 + shift + 2 * rank,
                      .dx_down = 6 * ranks - 2 + shift - rank});
  }
  return repeated_blocks(blocks, shape.microbatches);
}

}  // namespace remat
