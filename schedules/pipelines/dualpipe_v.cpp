#include <algorithm>

#include "schedules/pipelines/chunk_order.hpp"
#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/two_way.hpp"

namespace remat {

PipelineLists dualpipe_v(const PipelineShape& shape) {
  PipelineLists lists;
  const std::int32_t ranks = shape.ranks;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    lists.ranks.push_back(two_way_list({.to_middle = ranks - 1 - rank,
                                        .from_end = rank,
                                        .microbatches = std::max(shape.microbatches, 2 * ranks),
                                        .first = {.stage = rank},
                                        .second = {.stage = 2 * ranks - 1 - rank}}));
  }
  drop_microbatches_from(shape.microbatches, lists);
  return lists;
}

}  // namespace remat
