#include "schedules/protocols/torch.hpp"

namespace remat {

RegionMode TorchProtocol::region(const RegionTraits& traits) const {
  return traits.reentrant ? RegionMode::no_graph : RegionMode::holders;
}

bool TorchProtocol::stops_early(const RegionTraits& traits) const {
  return options_.early_stop && traits.early_stop && !traits.reentrant;
}

PackDecision TorchProtocol::pack(const PackState& state) const {
  if (state.index >= state.n_forward) {
    return state.forward_done ? PackDecision::too_many : PackDecision::pass;
  }
  const bool is_last = state.index + 1 == state.n_forward;
  return is_last && state.early_stop ? PackDecision::store_and_stop : PackDecision::store;
}

UnpackDecision TorchProtocol::unpack(const SlotState& state) const {
  if (!state.replayed) return UnpackDecision::replay;
  if (!state.filled) return UnpackDecision::never_filled;
  return state.handed_out ? UnpackDecision::twice : UnpackDecision::hand_out;
}

ReplayFault TorchProtocol::replay_ended(const ReplayEnd& end) const {
  if (!options_.determinism_check || end.surplus_passed) return ReplayFault::none;
  if (end.n_forward != end.n_replay) return ReplayFault::count;
  return end.metadata_equal ? ReplayFault::none : ReplayFault::metadata;
}

CacheDecision TorchProtocol::cached_op(const CacheState&) const {
  return CacheDecision::run;
}

bool TorchProtocol::checks_version_of(KeptThing thing) const {
  switch (thing) {
    case KeptThing::saved_tensor:
    case KeptThing::region_input:
      return is_strict() || !options_.ambient_hooks;
    case KeptThing::captured:
    case KeptThing::refilled:
      return is_strict();
  }
  return true;
}

std::unique_ptr<Protocol> make_torch(const ProtocolOptions& options) {
  return std::make_unique<TorchProtocol>(options);
}

}  // namespace remat
