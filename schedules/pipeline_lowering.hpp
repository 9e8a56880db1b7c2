#pragma once

#include <cstdint>
#include <optional>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// How lists of compute actions come by their messages.
enum class Lowering : std::uint8_t {
  naive,          // each receive right before its first use, each send right behind what makes it
  torch,          // whoever makes a message puts the receive into the other's list at that moment
  torch_deferred  // the same, then receives wait until their use, or until the same rank is sent to
};

/// The lists with SEND and RECV for what one rank makes and another uses; torch's also with
/// WAIT_SEND, of forwards behind their own backward, of gradients at the end. `on_demand`: R waits
/// for the gradient, so that it is received before R. None where torch's way finds no order, since
/// the lists could never finish. Source: torch.distributed.pipelining.schedules, _add_send_recv and
/// _defer_recv_ops.
std::optional<PipelineLists> lowered(const PipelineLists& lists, Lowering lowering, bool on_demand);

}  // namespace remat
