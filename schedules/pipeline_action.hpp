#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace remat {

/// What one entry of a pipeline's list does. DX and DW are the two halves of a backward: gradients
/// to inputs, gradients to parameters. A wait ends when what was sent has left.
enum class Work : std::uint8_t {
  forward,
  backward,
  dx,
  dw,
  replay,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  wait_send_forward,
  wait_send_backward,
  unshard,
  reshard,
  reduce_grad,
  wait_reduce_grad
};
constexpr std::size_t work_count = 15;

/// How an entry belongs together with the one behind it.
enum class Joined : std::uint8_t {
  no,
  overlapped,  // both need their inputs before the first starts; the second follows at once
  batched      // messages under way at the same time; the rank goes on when all are through
};

/// One entry of a rank's list. A stage is a chunk of the model; micro-batches count from 0 in each
/// pipe. Pipes are DualPipe's two directions, 0 where there is one. Collectives have no
/// micro-batch.
struct PipelineAction {
  Work work = Work::forward;
  Joined joined = Joined::no;  // with the next entry
  std::uint16_t pipe = 0;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int32_t slice = 0;
  friend constexpr auto operator<=>(const PipelineAction&, const PipelineAction&) = default;
};

/// What one rank does in one training step, strictly in this order.
using RankList = std::vector<PipelineAction>;

/// One list for each rank.
struct PipelineLists {
  std::vector<RankList> ranks;
  friend bool operator==(const PipelineLists&, const PipelineLists&) = default;
};

/// F, B, DX, DW or R: takes time on the rank.
constexpr bool is_compute(Work work) {
  return work <= Work::replay;
}
/// B or DX: makes the gradient that the stage before waits for.
constexpr bool makes_gradient(Work work) {
  return work == Work::backward || work == Work::dx;
}
constexpr bool is_send(Work work) {
  return work == Work::send_forward || work == Work::send_backward;
}
constexpr bool is_recv(Work work) {
  return work == Work::recv_forward || work == Work::recv_backward;
}
constexpr bool is_wait_send(Work work) {
  return work == Work::wait_send_forward || work == Work::wait_send_backward;
}
constexpr bool is_collective(Work work) {
  return work >= Work::unshard;
}

/// The same stage, micro-batch and slice, other work, joined to nothing.
constexpr PipelineAction with_work(PipelineAction action, Work work) {
  action.work = work;
  action.joined = Joined::no;
  return action;
}
/// The same, `by` stages on.
constexpr PipelineAction moved(PipelineAction action, Work work, std::int32_t by) {
  action = with_work(action, work);
  action.stage += by;
  return action;
}

/// The other end of a message: of SEND_F of a stage RECV_F of the next, of RECV_B of a stage SEND_B
/// of the next. `message` is a send or a receive.
PipelineAction other_end(const PipelineAction& message);

/// Where the entries end that begin at `first` and are joined: one behind the last of them.
std::size_t group_end(const RankList& list, std::size_t first);

/// "F", "DX", "SEND_F", "WAIT_REDUCE_GRAD", …
std::string_view word_of(Work work);

/// "F0.1", "p1:DX3.0", "R0.1/2" (slice 2), "SEND_F0.1", "UNSHARD0": what, stage, micro-batch.
std::string name_of(const PipelineAction& action);

/// The name of all that is joined at `first`: "(F0.3+B3.1)", "BATCH(SEND_F0.1+RECV_B0.0)".
std::string group_name(const RankList& list, std::size_t first);

/// How many pipes, stages, micro-batches and slices the lists name: one more than the largest
/// number of each.
struct PipelineExtent {
  std::int32_t pipes = 0;
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  std::int32_t slices = 0;
};
PipelineExtent extent_of(const PipelineLists& lists);

/// Entries of all lists.
std::size_t n_actions(const PipelineLists& lists);

/// Some list has an entry of such work.
bool has_work(const PipelineLists& lists, bool (*is_such)(Work));

}  // namespace remat
