#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/pipeline_run.hpp"

namespace remat {

/// A time in which a rank runs nothing.
struct BubbleWindow {
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t held = 0;  // activations alive meanwhile, in hundredths
};

struct RankFigures {
  std::int64_t busy = 0;
  std::int64_t span = 0;              // from its first start to its last end, of compute
  std::vector<BubbleWindow> bubbles;  // from 0 to the makespan
};

/// What a run comes to.
struct PipelineFigures {
  std::int64_t makespan = 0;
  std::int64_t bubble = 0;       // the makespan less the busiest rank's work
  std::int64_t span_bubble = 0;  // the longest span less the busiest rank's work
  double bubble_fraction = 0;    // idle time of all ranks in their time; for printing only
  std::vector<RankFigures> ranks;
};

/// Of a run that finished.
PipelineFigures figures_of(const PipelineLists& lists, const PipelineRun& run);

}  // namespace remat
