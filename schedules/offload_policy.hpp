#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "schedules/protocol_fault.hpp"

namespace remat {

/// What a tensor is kept for.
enum class KeptAs : std::uint8_t {
  saved,         // by an op, outside any checkpointed region
  region_input,  // a checkpointed region's tensor argument
  excluded,      // saved inside an excluded region
  cached         // to be served to a replay: a kept op's output, an excluded region's
};

/// Which of them go.
struct OffloadOptions {
  bool saved = true;
  bool region_inputs = true;
  bool excluded = true;
  bool cached = true;
};

/// A storage that something of an offload group is kept on, as the group's forward ends.
struct OffloadCandidate {
  std::int64_t bytes = 0;
  bool is_parameters = false;  // a parameter's or a buffer's
  bool is_callers = false;     // what the program is given and does not make
  bool is_read_later =
      false;  // by a statement behind the group, or it is what backward starts from
  bool has_other_owner = false;  // something that the groups do not know of will read it
};

/// Groups whose copies begin, and whose copies are waited for.
struct OffloadMoves {
  std::optional<std::size_t> begin;
  std::optional<std::size_t> wait;
};

/// What goes to the host and when it comes back: pure answers. Forward's groups are numbered in the
/// order in which they run. Source: protocols.md P11.
class OffloadPolicy {
 public:
  explicit OffloadPolicy(const OffloadOptions& options, ProtocolFault fault = ProtocolFault::none)
      : options_(options), fault_(fault) {}

  /// Things kept so are sent.
  bool takes(KeptAs as) const;
  /// The storage may leave the device.
  bool may_leave(const OffloadCandidate& candidate) const;
  /// Behind a group's forward: its copies to the host begin, and the group before it has left. The
  /// last group stays: backward begins with it.
  OffloadMoves after_forward(std::size_t group, std::size_t n_groups) const;
  /// Ahead of a group's backward: the copies back of the group whose turn is next begin, and its
  /// own have ended.
  OffloadMoves before_backward(std::size_t group, std::size_t n_groups) const;
  /// A group's forward that runs in a replay counts as one.
  bool acts_in_replays() const { return fault_ == ProtocolFault::offloads_in_replay; }
  /// Reads of what is not on the device are errors.
  bool checks_reads() const;

 private:
  OffloadOptions options_;
  ProtocolFault fault_;
};

}  // namespace remat
