#include "schedules/protocols/torch_sac.hpp"

namespace remat {

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
