#include <algorithm>

#include "schedules/pipelines/chunk_order.hpp"
#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/two_way.hpp"

namespace remat {

PipelineLists dualpipe(const PipelineShape& shape) {
  PipelineLists lists;
  const std::int32_t ranks = shape.ranks;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const bool is_near_start = rank < ranks / 2;
    const std::int32_t from_end = is_near_start ? rank : ranks - 1 - rank;
    const PipelineAction down = {.pipe = 0, .stage = rank};
    const PipelineAction up = {.pipe = 1, .stage = ranks - 1 - rank};
    lists.ranks.push_back(two_way_list({.to_middle = ranks / 2 - 1 - from_end,
                                        .from_end = from_end,
                                        .microbatches = std::max(shape.microbatches / 2, ranks),
                                        .first = is_near_start ? down : up,
                                        .second = is_near_start ? up : down}));
  }
  drop_microbatches_from(shape.microbatches / 2, lists);
  return lists;
}

}  // namespace remat
