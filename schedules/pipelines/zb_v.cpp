#include <algorithm>

#include "schedules/pipelines/chunk_order.hpp"
#include "schedules/pipelines/generators.hpp"
#include "schedules/pipelines/list_builder.hpp"

namespace remat {
namespace {

/// One rank's list. Its first chunk is on the way down the V, its second on the way up.
class ZbVRank {
 public:
  ZbVRank(RankList& list, std::int32_t rank, std::int32_t ranks, std::int32_t microbatches)
      : list_(list),
        rank_(rank),
        ranks_(ranks),
        microbatches_(microbatches),
        down_{.stage = rank},
        up_{.stage = 2 * ranks - 1 - rank} {}

  void build() {
    warm_up();
    while (up_.forwards < microbatches_) {
      if (down_.forwards < microbatches_) forward(down_);
      whole_backward(down_);
      forward(up_);
      whole_backward(up_);
    }
    cool_down();
  }

 private:
  /// What of a chunk is in the list already.
  struct Chunk {
    std::int32_t stage = 0;
    std::int32_t forwards = 0;
    std::int32_t dxs = 0;
    std::int32_t dws = 0;
  };

  void forward(Chunk& chunk) { list_.add(Work::forward, chunk.stage, chunk.forwards++); }
  void dx(Chunk& chunk) { list_.add(Work::dx, chunk.stage, chunk.dxs++); }
  void dw(Chunk& chunk) { list_.add(Work::dw, chunk.stage, chunk.dws++); }
  void whole_backward(Chunk& chunk) {
    dx(chunk);
    dw(chunk);
  }

  void warm_up() {
    for (std::int32_t i = 0; i < 2 * (ranks_ - rank_) - 1; ++i)
      forward(down_);
    for (std::int32_t i = 0; i < rank_; ++i) {
      forward(up_);
      forward(down_);
    }
    for (std::int32_t i = rank_; i < ranks_; ++i) {
      forward(up_);
      whole_backward(up_);
    }
  }

  void cool_down() {
    for (std::int32_t i = 0; i < rank_; ++i) {
      dx(down_);
      dx(up_);
    }
    for (std::int32_t i = rank_; i < ranks_; ++i)
      whole_backward(down_);
    while (up_.dws < up_.dxs)
      dw(up_);
    while (down_.dws < down_.dxs)
      dw(down_);
  }

  ListBuilder list_;
  std::int32_t rank_;
  std::int32_t ranks_;
  std::int32_t microbatches_;
  Chunk down_;
  Chunk up_;
};

}  // namespace

PipelineLists zb_v(const PipelineShape& shape) {
  PipelineLists lists;
  // Fewer micro-batches than fill the pipeline take the places of the first of so many.
  const std::int32_t microbatches = std::max(2 * shape.ranks - 1, shape.microbatches);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    ZbVRank(lists.ranks.emplace_back(), rank, shape.ranks, microbatches).build();
  drop_microbatches_from(shape.microbatches, lists);
  return lists;
}

}  // namespace remat
