#include <algorithm>

#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists seq_1f1b(const PipelineShape& shape) {
  PipelineLists lists;
  const std::int32_t slices = shape.slices;
  const std::int32_t n = shape.microbatches * slices;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    // A micro-batch's backward begins with its last slice, so all slices are ahead of it.
    const std::int32_t ahead = std::min(shape.ranks - 2 - rank + slices, n);
    for (std::int32_t step = 0; step < n + ahead; ++step) {
      if (step < n) list.add(Work::forward, rank, step / slices, step % slices);
      if (const std::int32_t back = step - ahead; back >= 0)
        list.add(Work::backward, rank, back / slices, slices - 1 - back % slices);
    }
  }
  return lists;
}

}  // namespace remat
