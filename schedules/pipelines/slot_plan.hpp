#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace remat {

/// What a rank of a V does with a micro-batch, in this order; the last two are one where a plan
/// does not tell the chunks' DW's apart.
enum class VStep : std::uint8_t { forward_down, forward_up, dx_up, dx_down, dw, dw_down };
constexpr std::size_t v_step_count = 6;

/// When a rank does what: for each step, the slot of each micro-batch, rising. A slot is a unit of
/// time in which one step fits.
struct RankSlotPlan {
  std::array<std::vector<std::int32_t>, v_step_count> slots;
  std::vector<std::int32_t>& operator[](VStep step) {
    return slots[static_cast<std::size_t>(step)];
  }
  const std::vector<std::int32_t>& operator[](VStep step) const {
    return slots[static_cast<std::size_t>(step)];
  }
};
using SlotPlan = std::vector<RankSlotPlan>;  // one for each rank

/// One step of one micro-batch in a plan.
struct PlannedStep {
  std::int32_t slot = 0;
  std::int32_t rank = 0;
  VStep step = VStep::forward_down;
  std::int32_t microbatch = 0;
};

/// All steps of a plan by slot, then rank, step and micro-batch.
std::vector<PlannedStep> in_order(const SlotPlan& plan);

/// Puts a DW into each gap behind a DX that has none yet; what is left over goes behind the end.
/// `by_chunk`: those of the up chunk first, each chunk's apart; otherwise all in `VStep::dw`.
void put_dws(RankSlotPlan& plan, bool by_chunk);

/// Takes the DW's out again.
void drop_dws(SlotPlan& plan);

/// Moves all steps to where they would start if each took a slot and messages took no time.
void settle(SlotPlan& plan);

}  // namespace remat
