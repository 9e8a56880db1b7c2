#include <algorithm>

#include "schedules/pipelines/chunk_order.hpp"
#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists interleaved_zb(const PipelineShape& shape) {
  PipelineLists lists;
  const ChunkOrder order(shape);
  const std::int32_t n = order.n_steps();
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    const std::int32_t ahead =
        std::min(order.steps_before_last_chunk() + shape.ranks - 1 - rank, n);
    std::int32_t n_dw = 0;
    for (std::int32_t step = 0; step < n + ahead; ++step) {
      if (step < n) list.add(order.forward(rank, step));
      if (step < ahead) continue;
      list.add(order.backward(Work::dx, rank, step - ahead));
      // Rank r lets r DX's pass before its first DW.
      if (step - ahead >= rank) list.add(order.backward(Work::dw, rank, n_dw++));
    }
    while (n_dw < n)
      list.add(order.backward(Work::dw, rank, n_dw++));
  }
  drop_microbatches_from(shape.microbatches, lists);
  return lists;
}

}  // namespace remat
