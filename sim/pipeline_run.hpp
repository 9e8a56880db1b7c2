#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_action.hpp"
#include "sim/pipeline_channel.hpp"
#include "sim/pipeline_costs.hpp"
#include "sim/pipeline_memory.hpp"

namespace remat {

struct PipelineSettings {
  PipelineCosts costs;
  Channel channel;
  bool on_demand = false;  // an R waits for the next stage's gradient too
  /// What no list has is not waited for. Lists with messages may always leave compute out.
  bool ignores_missing = false;
  FreedEarly freed_early;
  std::optional<std::int64_t> memory_limit;  // of each rank, in hundredths of an activation
};

/// When an entry of a list runs.
struct ActionTimes {
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const ActionTimes&, const ActionTimes&) = default;
};

/// Why an entry never runs.
struct Blocked {
  std::size_t rank = 0;
  std::string action;     // with all that it is joined with
  std::string waits_for;  // an entry, or why there is none
  std::optional<std::size_t> waits_for_rank;
  std::string behind;  // the entry that stands before `waits_for` in its list or queue; or empty
};

struct PipelineRun {
  /// One for each entry of each list; empty where the lists never finish.
  std::vector<std::vector<ActionTimes>> times;
  /// A cycle of entries, each waiting for the next, the last for the first; or one that waits for
  /// what no list has. Empty where the lists finish.
  std::vector<Blocked> deadlock;
  /// Numbers in ActionTable's order of the compute and the messages that the makespan is due to,
  /// from the start on.
  std::vector<std::uint32_t> critical_path;
  std::vector<RankMemory> memory;  // one for each rank

  bool is_finished() const { return deadlock.empty(); }
};

/// Runs each list strictly in order: an entry starts when its rank is free and all that it needs is
/// there, plus the latency where another rank made it. Lists with messages send them through the
/// channel; without any, what another rank makes arrives by itself. Linear in the entries.
/// Source: pipelines.md §0, §4.
PipelineRun run_pipeline(const PipelineLists& lists, const PipelineSettings& settings);

}  // namespace remat
