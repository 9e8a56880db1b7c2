#include "schedules/pipelines/controllable_memory.hpp"

#include "schedules/pipelines/list_builder.hpp"
#include "schedules/pipelines/slot_packer.hpp"

namespace remat {
namespace {

/// F, DX and DW of two chunks.
constexpr std::int32_t slots_per_microbatch = 6;

SlotPlan repeated(const std::vector<BuildingBlock>& blocks, std::int32_t microbatches) {
  SlotPlan plan;
  for (const BuildingBlock& block : blocks) {
    RankSlotPlan& rank = plan.emplace_back();
    for (std::int32_t m = 0; m < microbatches; ++m) {
      const std::int32_t later = slots_per_microbatch * m;
      rank[VStep::forward_down].push_back(block.forward_down + later);
      rank[VStep::forward_up].push_back(block.forward_up + later);
      rank[VStep::dx_up].push_back(block.dx_up + later);
      rank[VStep::dx_down].push_back(block.dx_down + later);
    }
  }
  return plan;
}

void put_all_dws(SlotPlan& plan, bool by_chunk) {
  for (RankSlotPlan& rank : plan)
    put_dws(rank, by_chunk);
}

Work work_of(VStep step) {
  switch (step) {
    case VStep::forward_down:
    case VStep::forward_up:
      return Work::forward;
    case VStep::dx_up:
    case VStep::dx_down:
      return Work::dx;
    case VStep::dw:
    case VStep::dw_down:
      break;
  }
  return Work::dw;
}

bool is_down(VStep step) {
  return step == VStep::forward_down || step == VStep::dx_down || step == VStep::dw_down;
}

}  // namespace

PipelineLists repeated_blocks(const std::vector<BuildingBlock>& blocks, std::int32_t microbatches) {
  SlotPlan plan = repeated(blocks, microbatches);
  put_all_dws(plan, false);
  pack(plan, Packed::both_ends);
  settle(plan);

  drop_dws(plan);
  pack(plan, Packed::end);
  put_all_dws(plan, false);
  settle(plan);

  drop_dws(plan);
  put_all_dws(plan, true);
  PipelineLists lists;
  lists.ranks.resize(plan.size());
  const auto stages = static_cast<std::int32_t>(2 * plan.size());
  for (const PlannedStep& at : in_order(plan)) {
    ListBuilder list(lists.ranks[static_cast<std::size_t>(at.rank)]);
    const std::int32_t stage = is_down(at.step) ? at.rank : stages - 1 - at.rank;
    list.add(work_of(at.step), stage, at.microbatch);
  }
  return lists;
}

}  // namespace remat
