#include "sim/pipeline_figures.hpp"

#include <algorithm>

#include "model/units.hpp"

namespace remat {
namespace {

/// Everything but the bubbles, which need the makespan. No work: all zero.
RankFigures work_of(const RankList& list, const std::vector<ActionTimes>& times) {
  RankFigures rank;
  std::int64_t first = INT64_MAX;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_compute(list[i].work)) continue;
    rank.busy += times[i].end - times[i].start;
    first = std::min(first, times[i].start);
    last = std::max(last, times[i].end);
  }
  rank.span = std::max<std::int64_t>(last - first, 0);
  return rank;
}

std::vector<BubbleWindow> bubbles_of(const RankList& list, const std::vector<ActionTimes>& times,
                                     const RankMemory& memory, std::int64_t makespan) {
  std::vector<BubbleWindow> bubbles;
  std::int64_t free_from = 0;
  std::int64_t held = 0;
  const auto idle_until = [&](std::int64_t when) {
    if (when > free_from) bubbles.push_back({free_from, when - free_from, held});
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_compute(list[i].work)) continue;
    idle_until(times[i].start);
    free_from = std::max(free_from, times[i].end);
    held = memory.held_after[i];
  }
  idle_until(makespan);
  return bubbles;
}

}  // namespace

PipelineFigures figures_of(const PipelineLists& lists, const PipelineRun& run) {
  PipelineFigures figures;
  std::int64_t busiest = 0;
  std::int64_t longest = 0;
  WideInteger all_busy = 0;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    figures.ranks.push_back(work_of(lists.ranks[rank], run.times[rank]));
    busiest = std::max(busiest, figures.ranks[rank].busy);
    longest = std::max(longest, figures.ranks[rank].span);
    all_busy += figures.ranks[rank].busy;
    for (const ActionTimes& times : run.times[rank])
      figures.makespan = std::max(figures.makespan, times.end);
  }
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    figures.ranks[rank].bubbles =
        bubbles_of(lists.ranks[rank], run.times[rank], run.memory[rank], figures.makespan);
  }
  figures.bubble = figures.makespan - busiest;
  figures.span_bubble = longest - busiest;
  if (figures.makespan > 0) {
    const WideInteger all =
        static_cast<WideInteger>(figures.makespan) * static_cast<WideInteger>(lists.ranks.size());
    figures.bubble_fraction = static_cast<double>(all - all_busy) / static_cast<double>(all);
  }
  return figures;
}

}  // namespace remat
