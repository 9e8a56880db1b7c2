#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace remat {

/// One entry of a rank's list. DX and DW are the two halves of B: gradients to inputs, gradients to
/// parameters.
enum class ActionKind : std::uint8_t { forward, backward, dx, dw, update, zero_grad };

struct Action {
  ActionKind kind = ActionKind::forward;
  std::int64_t microbatch = 0;
  bool retain = false;  // backward keeps the graph for another one
  friend bool operator==(const Action&, const Action&) = default;
};

/// The actions of one rank in one training step, in order.
using ActionList = std::vector<Action>;

/// "F0.1", "B0.1", "DX0.1", "DW0.1", "UPDATE", "ZERO_GRAD": what, stage (0 with one rank),
/// micro-batch.
std::string name_of(const Action& action);

/// Every forward, then every backward in the same order, `split` in two halves each, then an
/// update where `updates` says so: gpipe's order on one rank.
ActionList all_forwards_first(std::int64_t microbatches, bool split, bool updates);

}  // namespace remat
