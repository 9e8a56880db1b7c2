#include "schedules/protocols/torch.hpp"

namespace remat {

RegionMode TorchProtocol::region(const RegionTraits& traits) const {
  return options_.recompute_ratio.includes(traits.owner, traits.layer) ? layer(traits)
                                                                       : RegionMode::plain;
}

RegionMode TorchProtocol::layer(const RegionTraits& traits) const {
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
  if (has(ProtocolFault::saved_lists_unchecked)) return ReplayFault::none;
  if (end.n_forward != end.n_replay) return ReplayFault::count;
  return end.metadata_equal ? ReplayFault::none : ReplayFault::metadata;
}

FrameRules TorchProtocol::frame_rules() const {
  return {.replays_each_session = !has(ProtocolFault::one_replay_for_all_sessions),
          .counts_dead_holders = !has(ProtocolFault::live_holders_counted),
          .releases_when_read = !has(ProtocolFault::refilled_kept),
          .tracks_nested_outputs = is_strict() && !has(ProtocolFault::nested_outputs_lost)};
}

CacheRules TorchProtocol::cache_rules() const {
  return {.has_queue_per_op = !has(ProtocolFault::one_cache_queue),
          .restarts_counters = !has(ProtocolFault::cache_counters_run_on),
          .refuses_unwritten = is_strict(),
          .asks_policy_again = has(ProtocolFault::policy_asked_again)};
}

bool TorchProtocol::restores_generator_after_served() const {
  return is_strict() && !has(ProtocolFault::generator_left_after_served);
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
      return is_strict() && !has(ProtocolFault::captured_unchecked);
    case KeptThing::refilled:
      return is_strict() && !has(ProtocolFault::refilled_unchecked);
    case KeptThing::excluded:
    case KeptThing::rederived:
    case KeptThing::served:
      return true;
  }
  return true;
}

std::unique_ptr<Protocol> make_torch(const ProtocolOptions& options) {
  return std::make_unique<TorchProtocol>(options);
}

}  // namespace remat
