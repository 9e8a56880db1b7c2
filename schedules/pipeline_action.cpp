#include "schedules/pipeline_action.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/errors.hpp"

namespace remat {
namespace {

constexpr std::array<std::string_view, work_count> names = {
    "F",           "B",       "DX",      "DW",          "R",
    "SEND_F",      "RECV_F",  "SEND_B",  "RECV_B",      "WAIT_SEND_F",
    "WAIT_SEND_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"};

}  // namespace

std::string_view word_of(Work work) {
  return names[static_cast<std::size_t>(work)];
}

PipelineAction other_end(const PipelineAction& message) {
  REMAT_INVARIANT(is_send(message.work) || is_recv(message.work));
  switch (message.work) {
    case Work::send_forward:
      return moved(message, Work::recv_forward, 1);
    case Work::recv_forward:
      return moved(message, Work::send_forward, -1);
    case Work::send_backward:
      return moved(message, Work::recv_backward, -1);
    default:
      return moved(message, Work::send_backward, 1);
  }
}

std::size_t group_end(const RankList& list, std::size_t first) {
  while (first + 1 < list.size() && list[first].joined != Joined::no)
    ++first;
  return std::min(first + 1, list.size());
}

std::string name_of(const PipelineAction& action) {
  std::string name;
  if (action.pipe != 0) name += "p" + std::to_string(action.pipe) + ":";
  name += word_of(action.work);
  name += std::to_string(action.stage);
  if (is_collective(action.work)) return name;
  name += "." + std::to_string(action.microbatch);
  if (action.slice != 0) name += "/" + std::to_string(action.slice);
  return name;
}

std::string group_name(const RankList& list, std::size_t first) {
  const std::size_t end = group_end(list, first);
  if (end == first + 1) return name_of(list[first]);
  std::string name = list[first].joined == Joined::batched ? "BATCH(" : "(";
  for (std::size_t i = first; i < end; ++i)
    name += (i == first ? "" : "+") + name_of(list[i]);
  return name + ")";
}

PipelineExtent extent_of(const PipelineLists& lists) {
  PipelineExtent extent;
  for (const RankList& list : lists.ranks) {
    for (const PipelineAction& action : list) {
      extent.pipes = std::max(extent.pipes, action.pipe + 1);
      extent.stages = std::max(extent.stages, action.stage + 1);
      extent.microbatches = std::max(extent.microbatches, action.microbatch + 1);
      extent.slices = std::max(extent.slices, action.slice + 1);
    }
  }
  return extent;
}

std::size_t n_actions(const PipelineLists& lists) {
  std::size_t n = 0;
  for (const RankList& list : lists.ranks)
    n += list.size();
  return n;
}

bool has_work(const PipelineLists& lists, bool (*is_such)(Work)) {
  return std::any_of(lists.ranks.begin(), lists.ranks.end(), [&](const RankList& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const PipelineAction& action) { return is_such(action.work); });
  });
}

}  // namespace remat
