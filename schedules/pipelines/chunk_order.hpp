#pragma once

#include <cstdint>

#include "schedules/pipelines/generators.hpp"

namespace remat {

/// In which order a rank of a looped pipeline takes its chunks: micro-batches come in rounds of
/// about P, and each chunk takes a round whole. As torch's interleaved schedules have it: one round
/// for each P micro-batches, all of one size.
class ChunkOrder {
 public:
  explicit ChunkOrder(const PipelineShape& shape);

  /// Chunk runs of one rank, those of micro-batches that are too many with them.
  std::int32_t n_steps() const { return microbatches_ * chunks_; }
  /// Forwards of all chunks but the last that come before the first backward can.
  std::int32_t steps_before_last_chunk() const { return (chunks_ - 1) * round_; }

  /// The chunk run by the rank's forward or backward number `step`.
  PipelineAction forward(std::int32_t rank, std::int32_t step) const;
  PipelineAction backward(Work work, std::int32_t rank, std::int32_t step) const;

 private:
  PipelineAction at(Work work, std::int32_t rank, std::int32_t chunk, std::int32_t step) const;

  std::int32_t ranks_;
  std::int32_t chunks_;
  std::int32_t microbatches_;  // made up to full rounds
  std::int32_t round_;
};

/// The lists without micro-batches from `microbatches` on.
void drop_microbatches_from(std::int32_t microbatches, PipelineLists& lists);

}  // namespace remat
