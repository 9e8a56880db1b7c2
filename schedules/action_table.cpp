#include "schedules/action_table.hpp"

namespace remat {
namespace {

Work looked_up(Work work) {
  return work == Work::dx ? Work::backward : work;
}

std::size_t product(const PipelineExtent& extent) {
  return static_cast<std::size_t>(extent.pipes) * static_cast<std::size_t>(extent.stages) *
         static_cast<std::size_t>(extent.microbatches) * static_cast<std::size_t>(extent.slices);
}

bool is_within(const PipelineAction& action, const PipelineExtent& extent) {
  return action.pipe < extent.pipes && action.stage >= 0 && action.stage < extent.stages &&
         action.microbatch >= 0 && action.microbatch < extent.microbatches && action.slice >= 0 &&
         action.slice < extent.slices;
}

class NeedsBuilder {
 public:
  NeedsBuilder(const PipelineAction& action, const PipelineExtent& extent)
      : action_(action), extent_(extent) {}

  void add(Work work, std::int32_t stages_on = 0, std::int32_t slices_on = 0) {
    PipelineAction need = moved(action_, work, stages_on);
    need.slice += slices_on;
    if (is_within(need, extent_)) needs.actions[needs.size++] = need;
  }

  Needs needs = {};

 private:
  const PipelineAction& action_;
  const PipelineExtent& extent_;
};

}  // namespace

ActionTable::ActionTable(const PipelineLists& lists) : lists_(lists), extent_(extent_of(lists)) {
  std::uint32_t number = 0;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    first_of_rank_.push_back(number);
    for (const PipelineAction& action : lists.ranks[rank]) {
      rank_of_.push_back(static_cast<std::uint32_t>(rank));
      std::vector<std::uint32_t>& numbers =
          numbers_[static_cast<std::size_t>(looked_up(action.work))];
      if (numbers.empty()) numbers.resize(product(extent_), nothing);
      if (std::uint32_t& cell = numbers[cell_of(action)]; cell == nothing) cell = number;
      ++number;
    }
  }
  first_of_rank_.push_back(number);
}

std::optional<std::uint32_t> ActionTable::find(const PipelineAction& action) const {
  const std::vector<std::uint32_t>& numbers =
      numbers_[static_cast<std::size_t>(looked_up(action.work))];
  if (numbers.empty() || !is_within(action, extent_)) return std::nullopt;
  const std::uint32_t number = numbers[cell_of(action)];
  return number == nothing ? std::nullopt : std::optional(number);
}

std::size_t ActionTable::cell_of(const PipelineAction& action) const {
  std::size_t cell = action.pipe;
  cell = cell * static_cast<std::size_t>(extent_.stages) + static_cast<std::size_t>(action.stage);
  cell = cell * static_cast<std::size_t>(extent_.microbatches) +
         static_cast<std::size_t>(action.microbatch);
  return cell * static_cast<std::size_t>(extent_.slices) + static_cast<std::size_t>(action.slice);
}

Needs needs_of(const PipelineAction& action, const PipelineExtent& extent, bool on_demand) {
  NeedsBuilder builder(action, extent);
  switch (action.work) {
    case Work::forward:
      builder.add(Work::forward, -1);
      builder.add(Work::forward, 0, -1);
      break;
    case Work::backward:
    case Work::dx:
      builder.add(Work::backward, 1);
      builder.add(Work::forward);
      builder.add(Work::replay);
      builder.add(Work::backward, 0, 1);
      break;
    case Work::dw:
      builder.add(Work::backward);
      break;
    case Work::replay:
      builder.add(Work::forward);
      if (on_demand) builder.add(Work::backward, 1);
      break;
    case Work::send_forward:
      builder.add(Work::forward);
      break;
    case Work::send_backward:
      builder.add(Work::backward);
      break;
    case Work::recv_forward:
    case Work::recv_backward:
    case Work::wait_send_forward:
    case Work::wait_send_backward:
    case Work::unshard:
    case Work::reshard:
    case Work::reduce_grad:
    case Work::wait_reduce_grad:
      break;
  }
  return builder.needs;
}

}  // namespace remat
