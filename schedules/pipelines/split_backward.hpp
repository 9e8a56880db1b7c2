#pragma once

#include <cstdint>

#include "schedules/pipelines/generators.hpp"

namespace remat {

/// One stage a rank, forward and DX in turn behind `ahead` forwards, each DW `delay` DX's after its
/// own: what the handcrafted schedules of Zero Bubble (2401.10241) have in common.
struct SplitBackward {
  std::int32_t ahead = 0;
  std::int32_t delay = 0;
};
RankList split_backward_list(std::int32_t rank, std::int32_t microbatches,
                             const SplitBackward& rule);

}  // namespace remat
