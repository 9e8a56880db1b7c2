#include "schedules/protocols/torch_sac.hpp"

namespace remat {

/// Keeping what a mutating op returns would leave out its write.
bool TorchSacProtocol::keeps(const KeepRequest& request) const {
  if (request.exchanges && has(ProtocolFault::collectives_kept)) return request.wanted;
  if (request.exchanges && !keeps_collectives()) return false;
  if (request.writes && !has(ProtocolFault::mutating_ops_kept)) return false;
  const std::int64_t every = options().keep_every;
  return request.wanted && (every == 0 || request.call % every == 0);
}

CacheDecision TorchSacProtocol::cached_op(const CacheState& state) const {
  if (!state.exists) return CacheDecision::no_entry;
  if (!state.kept) return CacheDecision::run;
  if (state.consumed) return CacheDecision::consumed;
  if (state.written_since && (is_strict() || !options().allow_cache_entry_mutation))
    return CacheDecision::written;
  return CacheDecision::serve;
}

std::unique_ptr<Protocol> make_torch_sac(const ProtocolOptions& options) {
  return std::make_unique<TorchSacProtocol>(options);
}

}  // namespace remat
