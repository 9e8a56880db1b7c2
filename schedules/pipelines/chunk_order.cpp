#include "schedules/pipelines/chunk_order.hpp"

#include <algorithm>

namespace remat {
namespace {

std::int32_t rounds_of(std::int32_t microbatches, std::int32_t ranks) {
  return std::max(1, microbatches / ranks);
}

/// The next number of micro-batches that its rounds divide.
std::int32_t made_up(std::int32_t microbatches, std::int32_t ranks) {
  while (microbatches % rounds_of(microbatches, ranks) != 0)
    ++microbatches;  // ends at a multiple of `ranks` at the latest
  return microbatches;
}

}  // namespace

ChunkOrder::ChunkOrder(const PipelineShape& shape)
    : ranks_(shape.ranks),
      chunks_(shape.chunks),
      microbatches_(made_up(shape.microbatches, shape.ranks)),
      round_(microbatches_ / rounds_of(microbatches_, ranks_)) {}

PipelineAction ChunkOrder::forward(std::int32_t rank, std::int32_t step) const {
  return at(Work::forward, rank, step / round_ % chunks_, step);
}

PipelineAction ChunkOrder::backward(Work work, std::int32_t rank, std::int32_t step) const {
  return at(work, rank, chunks_ - 1 - step / round_ % chunks_, step);
}

PipelineAction ChunkOrder::at(Work work, std::int32_t rank, std::int32_t chunk,
                              std::int32_t step) const {
  const std::int32_t round = step / (round_ * chunks_);
  return {
      .work = work, .stage = chunk * ranks_ + rank, .microbatch = round * round_ + step % round_};
}

void drop_microbatches_from(std::int32_t microbatches, PipelineLists& lists) {
  const auto is_surplus = [&](const PipelineAction& action) {
    return action.microbatch >= microbatches;
  };
  for (RankList& list : lists.ranks) {
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      if (is_surplus(list[i]) || is_surplus(list[i + 1])) list[i].joined = Joined::no;
    }
    list.erase(std::remove_if(list.begin(), list.end(), is_surplus), list.end());
  }
}

}  // namespace remat
