#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/split_backward.hpp"

namespace remat {

PipelineLists zb_h1(const PipelineShape& shape) {
  PipelineLists lists;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    lists.ranks.push_back(split_backward_list(rank, shape.microbatches,
                                              {.ahead = shape.ranks - 1 - rank, .delay = rank}));
  }
  return lists;
}

}  // namespace remat
