#include "schedules/pipelines/split_backward.hpp"

#include <algorithm>

#include "schedules/pipelines/list_builder.hpp"

namespace remat {

RankList split_backward_list(std::int32_t rank, std::int32_t microbatches,
                             const SplitBackward& rule) {
  RankList list;
  ListBuilder builder(list);
  const std::int32_t ahead = std::min(rule.ahead, microbatches);
  const std::int32_t delay = std::min(rule.delay, microbatches);
  for (std::int32_t step = 0; step < ahead + microbatches + delay; ++step) {
    const std::int32_t dx = step - ahead;
    const std::int32_t dw = dx - delay;
    if (step < microbatches) builder.add(Work::forward, rank, step);
    if (dx >= 0 && dx < microbatches) builder.add(Work::dx, rank, dx);
    if (dw >= 0 && dw < microbatches) builder.add(Work::dw, rank, dw);
  }
  return list;
}

}  // namespace remat
