#include "schedules/pipelines/slot_plan.hpp"

#include <algorithm>
#include <tuple>

namespace remat {
namespace {

/// The steps of one rank by slot. No two share one.
std::vector<PlannedStep> in_order(const RankSlotPlan& plan, std::int32_t rank) {
  std::vector<PlannedStep> steps;
  for (std::size_t step = 0; step < v_step_count; ++step) {
    for (std::size_t m = 0; m < plan.slots[step].size(); ++m) {
      steps.push_back(
          {plan.slots[step][m], rank, static_cast<VStep>(step), static_cast<std::int32_t>(m)});
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const PlannedStep& a, const PlannedStep& b) { return a.slot < b.slot; });
  return steps;
}

/// Which of the two chunks a DX belongs to, as `put_dws` counts them.
std::size_t chunk_of(VStep step, bool by_chunk) {
  return by_chunk && step == VStep::dx_down ? 1 : 0;
}

/// Slot by slot, the end of the step there. Index: rank, step, micro-batch.
class SettledPlan {
 public:
  explicit SettledPlan(SlotPlan& plan) : plan_(plan), rank_end_(plan.size(), 0) {}

  /// Steps come in the order of the old plan, of which each slot is overwritten only once it has
  /// been read.
  void place(const PlannedStep& at) {
    std::int32_t start = rank_end_[index(at.rank)];
    const bool goes_down = at.step == VStep::forward_down || at.step == VStep::dx_up;
    const bool goes_up = at.step == VStep::forward_up || at.step == VStep::dx_down;
    if (goes_down && at.rank > 0) start = std::max(start, end(at, at.rank - 1));
    if (goes_up && index(at.rank) + 1 < plan_.size()) start = std::max(start, end(at, at.rank + 1));
    plan_[index(at.rank)][at.step][index(at.microbatch)] = start;
    rank_end_[index(at.rank)] = start + 1;
  }

 private:
  static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }
  std::int32_t end(const PlannedStep& at, std::int32_t rank) const {
    return plan_[index(rank)][at.step][index(at.microbatch)] + 1;
  }

  SlotPlan& plan_;
  std::vector<std::int32_t> rank_end_;
};

}  // namespace

std::vector<PlannedStep> in_order(const SlotPlan& plan) {
  std::vector<PlannedStep> steps;
  for (std::size_t rank = 0; rank < plan.size(); ++rank) {
    const std::vector<PlannedStep> more = in_order(plan[rank], static_cast<std::int32_t>(rank));
    steps.insert(steps.end(), more.begin(), more.end());
  }
  std::sort(steps.begin(), steps.end(), [](const PlannedStep& a, const PlannedStep& b) {
    return std::tie(a.slot, a.rank) < std::tie(b.slot, b.rank);
  });
  return steps;
}

void put_dws(RankSlotPlan& plan, bool by_chunk) {
  std::array<std::int32_t, 2> pending = {0, 0};
  const auto put = [&](std::int32_t slot) {
    const std::size_t chunk = pending[0] > 0 ? 0 : 1;
    if (pending[chunk] == 0) return false;
    --pending[chunk];
    plan[chunk == 0 ? VStep::dw : VStep::dw_down].push_back(slot);
    return true;
  };
  std::int32_t slot = 0;
  for (const PlannedStep& step : in_order(plan, 0)) {
    for (; slot < step.slot; ++slot)
      put(slot);
    slot = step.slot + 1;
    if (step.step == VStep::dx_up || step.step == VStep::dx_down)
      ++pending[chunk_of(step.step, by_chunk)];
  }
  while (put(slot))
    ++slot;
}

void drop_dws(SlotPlan& plan) {
  for (RankSlotPlan& rank : plan) {
    rank[VStep::dw].clear();
    rank[VStep::dw_down].clear();
  }
}

void settle(SlotPlan& plan) {
  const std::vector<PlannedStep> steps = in_order(plan);
  SettledPlan settled(plan);
  for (const PlannedStep& step : steps)
    settled.place(step);
}

}  // namespace remat
