#include "sim/pipeline_run.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "schedules/action_table.hpp"
#include "sim/pipeline_waits.hpp"
#include "sim/timing_graph.hpp"

namespace remat {
namespace {

std::string name_at(const ActionTable& table, std::uint32_t action) {
  const RankList& list = table.lists().ranks[table.rank_of(action)];
  std::size_t first = table.place_of(action);
  while (first > 0 && list[first - 1].joined != Joined::no)
    --first;
  return group_name(list, first);
}

/// A cycle of waits as entries that wait for entries: what only stands behind another is left out.
class DeadlockReport {
 public:
  DeadlockReport(const ActionTable& table, const PipelineWaits& waits)
      : table_(table), waits_(waits) {}

  std::vector<Blocked> blocked(std::vector<TimingGraph::Wait> cycle) const {
    if (waits_.is_never(cycle.front().waiter)) return {hopeless(waits_.hopeless().front())};
    // The cycle is told from a need on: a list alone is no cycle.
    const auto first = std::find_if(cycle.begin(), cycle.end(), is_need);
    REMAT_INVARIANT(first != cycle.end());
    std::rotate(cycle.begin(), first, cycle.end());
    std::vector<Blocked> blocked;
    for (const TimingGraph::Wait& wait : cycle) {
      if (is_need(wait)) {
        blocked.push_back(entry(wait));
      } else if (PipelineWaits::action_of(wait.waiter) != PipelineWaits::action_of(wait.awaited)) {
        blocked.back().behind = name_at(table_, PipelineWaits::action_of(wait.awaited));
      }
    }
    std::rotate(
        blocked.begin(),
        std::min_element(blocked.begin(), blocked.end(),
                         [](const Blocked& a, const Blocked& b) { return a.rank < b.rank; }),
        blocked.end());
    return blocked;
  }

 private:
  static bool is_need(const TimingGraph::Wait& wait) { return wait.kind != WaitKind::order; }

  Blocked hopeless(const PipelineWaits::Hopeless& action) const {
    return {.rank = table_.rank_of(action.action),
            .action = name_at(table_, action.action),
            .waits_for = action.waits_for,
            .waits_for_rank = std::nullopt,
            .behind = {}};
  }
  Blocked entry(const TimingGraph::Wait& wait) const {
    const std::uint32_t action = PipelineWaits::action_of(wait.waiter);
    const std::uint32_t other = PipelineWaits::action_of(wait.awaited);
    return {.rank = table_.rank_of(action),
            .action = name_at(table_, action),
            .waits_for = wait.kind == WaitKind::memory
                             ? "memory that " + name_of(table_[other]) + " frees"
                             : name_of(table_[other]),
            .waits_for_rank = table_.rank_of(other),
            .behind = {}};
  }

  const ActionTable& table_;
  const PipelineWaits& waits_;
};

std::vector<std::vector<ActionTimes>> times_of(const ActionTable& table, const TimingGraph& graph) {
  std::vector<std::vector<ActionTimes>> times(table.lists().ranks.size());
  for (std::uint32_t action = 0; action < table.size(); ++action) {
    times[table.rank_of(action)].push_back({graph.instant(PipelineWaits::start_of(action)),
                                            graph.instant(PipelineWaits::end_of(action))});
  }
  return times;
}

std::vector<std::uint32_t> critical_path(const ActionTable& table, const TimingGraph& graph) {
  std::uint32_t last = 0;
  for (std::uint32_t action = 0; action < table.size(); ++action) {
    if (graph.instant(PipelineWaits::end_of(action)) > graph.instant(PipelineWaits::end_of(last)))
      last = action;
  }
  std::vector<std::uint32_t> path;
  for (TimingGraph::Node node = PipelineWaits::end_of(last);;) {
    const auto wait = graph.decisive(node);
    if (!wait) break;
    const std::uint32_t action = PipelineWaits::action_of(wait->waiter);
    if (wait->time > 0 && (path.empty() || path.back() != action)) path.push_back(action);
    node = wait->awaited;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

PipelineRun run_pipeline(const PipelineLists& lists, const PipelineSettings& settings) {
  const ActionTable table(lists);
  PipelineRun run;
  run.memory = memory_of(table, settings.freed_early);
  PipelineWaits waits(table, settings);
  for (std::size_t rank = 0; rank < lists.ranks.size() && settings.memory_limit; ++rank) {
    const auto over = first_over(run.memory[rank], *settings.memory_limit);
    if (over) waits.add_memory(rank, *over);
  }
  TimingGraph& graph = waits.graph();
  graph.solve();
  if (!graph.is_solved()) {
    run.deadlock = DeadlockReport(table, waits).blocked(graph.cycle());
    return run;
  }
  run.times = times_of(table, graph);
  if (table.size() > 0) run.critical_path = critical_path(table, graph);
  return run;
}

}  // namespace remat
