#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_action.hpp"
#include "sim/pipeline_figures.hpp"
#include "sim/pipeline_run.hpp"

namespace remat {

/// Everything that is told of one schedule.
struct ScheduleOutcome {
  std::string name;
  std::string replay;
  std::string channel;
  std::string lowering;  // "none" where lists have come as they are
  PipelineLists lists;   // with messages, where it was lowered
  PipelineRun run;
  std::optional<PipelineFigures> figures;  // none where it never finishes

  struct Check {
    std::string name;
    bool holds = true;
  };
  std::vector<Check> checks;
  std::vector<std::string> complaints;

  bool is_valid() const;
};

/// One JSON object; `all` adds times, bubble windows and the critical path.
std::string schedule_json(const ScheduleOutcome& outcome, bool all);

/// A summary, a picture, and the lists if they are wanted.
std::string schedule_text(const ScheduleOutcome& outcome, bool lists);

}  // namespace remat
