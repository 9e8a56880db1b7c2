#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists gpipe(const PipelineShape& shape) {
  PipelineLists lists;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    for (const Work work : {Work::forward, Work::backward}) {
      for (std::int32_t m = 0; m < shape.microbatches; ++m)
        list.add(work, rank, m);
    }
  }
  return lists;
}

}  // namespace remat
