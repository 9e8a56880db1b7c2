#include <fmt/format.h>

#include "sim/offloader.hpp"
#include "sim/rank.hpp"

// Offload groups: where their forward ends, and what is kept in them (protocols.md P11).

namespace remat {
namespace {

std::string_view name_of(Residence residence) {
  switch (residence) {
    case Residence::device:
      return "device";
    case Residence::on_the_way_out:
      return "d2h";
    case Residence::away:
      return "host";
    case Residence::on_the_way_in:
      return "h2d";
  }
  return {};
}

}  // namespace

Duration Rank::copies_waited() const {
  return offloader_ == nullptr ? Duration() : offloader_->waited();
}

Flow Rank::run_offloaded(Walk& walk, std::size_t at, const OffloadBegin& group) {
  if (offloader_ == nullptr || walk.is_replay) return run(walk, at + 1, group.end);
  walk.offload_group = offloader_->group_at(walk.forward, at);
  const Flow flow = run(walk, at + 1, group.end);
  const auto number = std::exchange(walk.offload_group, std::nullopt);
  if (flow != Flow::done) return flow;
  const auto written = offloader_->leave(*number);
  if (!written) return flow;
  return fail("E-MUTATED", "builtins.RuntimeError",
              fmt::format("{}: '{}' of offload group {} has been modified by an inplace operation "
                          "since it was saved, and cannot be offloaded",
                          now(), value_of(written->value).name, written->group));
}

void Rank::keep_for_offload(const Walk& walk, KeptAs as, const Tensor& tensor) {
  if (offloader_ == nullptr || walk.is_replay) return;
  offloader_->keep(as, tensor, walk.offload_group);
}

/// A tensor that no hook sees: in a container, say.
void Rank::hold_on_device(const Walk& walk, const Tensor& tensor) {
  if (offloader_ != nullptr && !walk.is_replay) offloader_->hold(tensor);
}

/// Somebody reads what was kept and is not on the device.
Flow Rank::refuse_offloaded(const Tensor& tensor, const std::string& who) {
  return fail(
      "E-SWAP-STATE", "builtins.RuntimeError",
      fmt::format("{} reads '{}', which is in '{}' state, must be 'device'", who,
                  value_of(tensor.value).name, name_of(ledger_.residence(tensor.hold.storage()))));
}

bool Rank::is_offloaded(const Tensor& tensor) const {
  return offloader_ != nullptr && offloader_->policy().checks_reads() &&
         ledger_.residence(tensor.hold.storage()) != Residence::device;
}

/// The op runs on the compute stream, which the streams of copies are held against.
void Rank::launch(std::string_view name, std::span<const Tensor> reads,
                  std::span<const Tensor> writes) {
  if (offloader_ == nullptr || !log_->is_on()) return;
  const auto numbers = [&](std::span<const Tensor> tensors) {
    Few<std::int64_t> list;
    for (const Tensor& tensor : tensors)
      list.push_back(ledger_.number(tensor.hold.storage()));
    return list;
  };
  Few<std::int64_t> read = numbers(reads);
  Few<std::int64_t> written = numbers(writes);
  log_->launch(Offloader::compute_stream, name, span_of(read), span_of(written));
}

/// M39: what a replay saves is sent as if its forward ran.
void Rank::offload_in_replay(const CheckpointFrame& frame) {
  if (offloader_ == nullptr || !frame.offload_group || !offloader_->policy().acts_in_replays())
    return;
  offloader_->resume(microbatch_);
  for (const ReplaySession& session : frame.sessions) {
    for (const Refilled& filled : session.slots) {
      if (filled.filled && filled.tensor.hold)
        offloader_->keep(KeptAs::saved, filled.tensor, frame.offload_group);
    }
  }
  offloader_->leave(*frame.offload_group);
}

}  // namespace remat
