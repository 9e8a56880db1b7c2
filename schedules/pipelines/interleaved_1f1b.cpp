#include <algorithm>

#include "schedules/pipelines/chunk_order.hpp"
#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists interleaved_1f1b(const PipelineShape& shape) {
  PipelineLists lists;
  const ChunkOrder order(shape);
  const std::int32_t n = order.n_steps();
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    const std::int32_t ahead =
        std::min(order.steps_before_last_chunk() + 2 * (shape.ranks - 1 - rank), n);
    for (std::int32_t step = 0; step < n + ahead; ++step) {
      if (step < n) list.add(order.forward(rank, step));
      if (step >= ahead) list.add(order.backward(Work::backward, rank, step - ahead));
    }
  }
  drop_microbatches_from(shape.microbatches, lists);
  return lists;
}

}  // namespace remat
