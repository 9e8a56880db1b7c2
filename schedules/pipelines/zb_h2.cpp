#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/split_backward.hpp"

namespace remat {

PipelineLists zb_h2(const PipelineShape& shape) {
  PipelineLists lists;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    lists.ranks.push_back(split_backward_list(
        rank, shape.microbatches, {.ahead = 2 * (shape.ranks - 1 - rank), .delay = 2 * rank}));
  }
  return lists;
}

}  // namespace remat
