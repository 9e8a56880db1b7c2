#include "schedules/offload_policy.hpp"

namespace remat {

bool OffloadPolicy::takes(KeptAs as) const {
  switch (as) {
    case KeptAs::saved:
      return options_.saved;
    case KeptAs::region_input:
      return options_.region_inputs;
    case KeptAs::excluded:
      return options_.excluded;
    case KeptAs::cached:
      return options_.cached;
  }
  return false;
}

bool OffloadPolicy::may_leave(const OffloadCandidate& candidate) const {
  if (candidate.bytes == 0 || candidate.is_parameters) return false;
  if (fault_ == ProtocolFault::aliases_unprotected) return true;
  return !candidate.is_callers && !candidate.is_read_later && !candidate.has_other_owner;
}

OffloadMoves OffloadPolicy::after_forward(std::size_t group, std::size_t n_groups) const {
  OffloadMoves moves;
  if (group + 1 < n_groups) moves.begin = group;
  if (group > 0) moves.wait = group - 1;
  return moves;
}

OffloadMoves OffloadPolicy::before_backward(std::size_t group, std::size_t n_groups) const {
  OffloadMoves moves;
  if (group > 0) moves.begin = group - 1;
  const bool waits = group + 1 < n_groups && fault_ != ProtocolFault::reload_not_awaited;
  if (waits) moves.wait = group;
  return moves;
}

bool OffloadPolicy::checks_reads() const {
  return fault_ != ProtocolFault::offloads_in_replay &&
         fault_ != ProtocolFault::aliases_unprotected &&
         fault_ != ProtocolFault::reload_not_awaited;
}

}  // namespace remat
