#pragma once

#include <cstdint>

#include "schedules/pipelines/generators.hpp"

namespace remat {

/// A rank of DualPipe, which serves two flows that meet: in the order of its repository's README
/// and source. Also DualPipeV's, where the second flow is the same micro-batches on their way back.
struct TwoWayRank {
  std::int32_t to_middle = 0;     // ranks between this one and where the flows turn
  std::int32_t from_end = 0;      // ranks between this one and the nearer end
  std::int32_t microbatches = 0;  // of each flow; at least 2 · (to_middle + from_end + 1)
  PipelineAction first;           // pipe and stage of the flow that enters at the nearer end
  PipelineAction second;          // of the other one
};
RankList two_way_list(const TwoWayRank& rank);

}  // namespace remat
