#include <algorithm>

#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists one_f_one_b(const PipelineShape& shape) {
  PipelineLists lists;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    const std::int32_t ahead = std::min(shape.ranks - 1 - rank, shape.microbatches);
    for (std::int32_t step = 0; step < shape.microbatches + ahead; ++step) {
      if (step < shape.microbatches) list.add(Work::forward, rank, step);
      if (step >= ahead) list.add(Work::backward, rank, step - ahead);
    }
  }
  return lists;
}

}  // namespace remat
