#include "tests/schedules/every_second.hpp"

namespace remat {

/// What a call that writes in place returns is the tensor that it wrote: a replay that is served it
/// would go on without the write.
bool EverySecondProtocol::keeps(const KeepRequest& request) const {
  if (request.writes && fault_ != Fault::keeps_writes) return false;
  return request.call % 2 == 0;
}

CacheDecision EverySecondProtocol::cached_op(const CacheState& state) const {
  if (!state.exists) return CacheDecision::no_entry;
  if (!state.kept) return CacheDecision::run;
  if (state.consumed) return CacheDecision::consumed;
  return state.written_since ? CacheDecision::written : CacheDecision::serve;
}

CacheRules EverySecondProtocol::cache_rules() const {
  return {.asks_policy_again = fault_ == Fault::asks_again};
}

}  // namespace remat
