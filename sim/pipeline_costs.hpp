#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// How long one kind of work takes, in any unit of integer time: the same everywhere, or a row for
/// each stage with one cost for all of its micro-batches or one for each.
class WorkCost {
 public:
  explicit WorkCost(std::int64_t usual) : usual_(usual) {}
  explicit WorkCost(std::vector<std::vector<std::int64_t>> by_stage)
      : by_stage_(std::move(by_stage)) {}

  std::int64_t of(const PipelineAction& action) const;
  /// Stages that there is a row for; none: any.
  std::size_t n_stages() const { return by_stage_.size(); }
  /// The fewest micro-batches that some row has a cost for, of rows with more than one; none: any.
  std::optional<std::size_t> n_microbatches() const;

 private:
  std::int64_t usual_ = 0;
  std::vector<std::vector<std::int64_t>> by_stage_;
};

/// Costs are those of a stage, which is a chunk where a rank has several. Messages and collectives
/// take no time of the rank's own; a message arrives `latency` after it was sent.
struct PipelineCosts {
  WorkCost forward = WorkCost(1);
  WorkCost dx = WorkCost(1);
  WorkCost dw = WorkCost(1);
  std::optional<WorkCost> backward = std::nullopt;  // DX and DW together where it is not said
  std::optional<WorkCost> replay = std::nullopt;    // as long as F where it is not said
  std::int64_t latency = 0;

  std::int64_t of(const PipelineAction& action) const;
};

/// The longest that anything may take, so that no sum of costs overflows.
constexpr std::int64_t cost_max = 100'000'000'000;

/// Takes over what a text like "F=1,B=2,DX=1,DW=1,R=1,COMM=0" says. Throws InputError.
void set_costs(const std::string& text, PipelineCosts& costs);

/// Takes over what a JSON object says: keys F, B, DX, DW and R, each a number, a list with one for
/// each stage, or a list of lists with one for each stage and micro-batch; COMM, a number. `file`
/// is what messages call it. Throws InputError.
void read_costs(const std::string& file, const std::string& text, PipelineCosts& costs);

/// Throws InputError where a list of costs is too short for what the lists name.
void require_costs_for(const PipelineCosts& costs, const PipelineExtent& extent);

}  // namespace remat
