#include "sim/pipeline_memory.hpp"

#include <algorithm>

namespace remat {
namespace {

/// Runs through one list.
class MemoryCount {
 public:
  MemoryCount(const ActionTable& table, const FreedEarly& freed) : table_(table), freed_(freed) {}

  void run(const PipelineAction& action) {
    switch (action.work) {
      case Work::forward:
        if (table_.find(with_work(action, Work::replay))) {
          ++checkpoints_;
          memory_.peak_checkpoints = std::max(memory_.peak_checkpoints, checkpoints_);
        } else {
          held_ += whole_activation;
        }
        break;
      case Work::replay:
        held_ += whole_activation;
        break;
      default:
        break;
    }
    memory_.peak = std::max(memory_.peak, held_);
    memory_.held.push_back(held_);
    release(action);
    memory_.held_after.push_back(held_);
  }

  RankMemory memory() && { return std::move(memory_); }

 private:
  void release(const PipelineAction& action) {
    if (action.work == Work::backward) held_ -= whole_activation;
    if (action.work == Work::dx) held_ -= freed_.by_dx;
    if (action.work == Work::dw) held_ -= whole_activation - freed_.by_dx;
    if (makes_gradient(action.work) && table_.find(with_work(action, Work::replay))) --checkpoints_;
  }

  const ActionTable& table_;
  FreedEarly freed_;
  RankMemory memory_;
  std::int64_t held_ = 0;
  std::int64_t checkpoints_ = 0;
};

}  // namespace

std::vector<RankMemory> memory_of(const ActionTable& table, const FreedEarly& freed) {
  std::vector<RankMemory> ranks;
  for (const RankList& list : table.lists().ranks) {
    MemoryCount count(table, freed);
    for (const PipelineAction& action : list)
      count.run(action);
    ranks.push_back(std::move(count).memory());
  }
  return ranks;
}

std::optional<OverLimit> first_over(const RankMemory& memory, std::int64_t limit) {
  const auto over = std::find_if(memory.held.begin(), memory.held.end(),
                                 [&](std::int64_t held) { return held > limit; });
  if (over == memory.held.end()) return std::nullopt;
  OverLimit found = {static_cast<std::size_t>(over - memory.held.begin()), std::nullopt};
  for (std::size_t i = found.place + 1; i < memory.held.size() && !found.freed_at; ++i) {
    if (memory.held_after[i] < memory.held[i]) found.freed_at = i;
  }
  return found;
}

}  // namespace remat
