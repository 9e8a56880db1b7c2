#pragma once

#include "schedules/pipelines/slot_plan.hpp"

namespace remat {

/// Which steps may move when a plan is packed.
enum class Packed : std::uint8_t {
  both_ends,  // with DW's in the plan: of warm-up and cool-down
  end         // without: of cool-down only, DW's being thought into the gaps
};

/// Moves steps of the ends of a repeated pattern into earlier gaps, first come first served, as far
/// as what they need has run and no rank comes to hold more activations than the fullest rank did.
/// The squeeze of Controllable Memory (2405.15362, appendix), as its authors' greedy reordering
/// does it.
void pack(SlotPlan& plan, Packed packed);

}  // namespace remat
