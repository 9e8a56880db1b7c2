#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {

PipelineLists looped_bfs(const PipelineShape& shape) {
  PipelineLists lists;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    ListBuilder list(lists.ranks.emplace_back());
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::int32_t m = 0; m < shape.microbatches; ++m)
        list.add(Work::forward, chunk * shape.ranks + rank, m);
    }
    for (std::int32_t chunk = shape.chunks - 1; chunk >= 0; --chunk) {
      for (std::int32_t m = shape.microbatches - 1; m >= 0; --m)
        list.add(Work::backward, chunk * shape.ranks + rank, m);
    }
  }
  return lists;
}

}  // namespace remat
