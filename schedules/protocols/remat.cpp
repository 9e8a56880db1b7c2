#include "schedules/protocols/remat.hpp"

namespace remat {

/// torch_remat asks for no check of metadata; the number of saves is counted all the same.
ReplayFault RematProtocol::replay_ended(const ReplayEnd& end) const {
  ReplayEnd counted = end;
  counted.metadata_equal |= !is_strict();
  return TorchProtocol::replay_ended(counted);
}

FrameRules RematProtocol::frame_rules() const {
  FrameRules rules = TorchProtocol::frame_rules();
  rules.sets_generator = has_state_hooks();
  rules.nests = false;
  return rules;
}

ExclusionRules RematProtocol::exclusion_rules() const {
  // What a fault lets in is for the invariants to see, not for these guards to stop.
  const bool compares = is_strict() && options().fault == ProtocolFault::none;
  return {.excludes = true,
          .nests = true,
          .rederives = true,
          .compares_layouts = is_strict(),
          .compares_versions = compares,
          .compares_values = compares,
          .refuses_placeholders = false,  // an op that reads one is refused, not the code around it
          .restores_generator = has_state_hooks(),
          .demands_all_entries = false};
}

RematRules RematProtocol::remat_rules() const {
  return {.handles_regions = true,
          .persists_on_demand = !has(ProtocolFault::outputs_persisted_at_once),
          .finds_by_storage = !has(ProtocolFault::outputs_known_by_tensor),
          .hands_out_once = !has(ProtocolFault::references_filled_once),
          .refuses_all_writes = is_strict()};
}

/// torch_remat brings parameters like any other input. Strict keeps them, which costs no bytes:
/// then one that was written since is told for what it is.
bool RematProtocol::rederives(const InputMatch& match) const {
  if (match.is_parameter && is_strict()) return false;
  if (match.is_save_output || !match.same_storage || !match.same_dtype || !match.same_version)
    return false;
  return match.same_layout || (is_strict() ? match.is_safe_view : match.is_contained);
}

/// torch_remat looks at the version of what it kept, and not at that of what a replay brought.
bool RematProtocol::checks_version_of(KeptThing thing) const {
  if (thing != KeptThing::rederived) return TorchProtocol::checks_version_of(thing);
  return is_strict() && !has(ProtocolFault::refilled_unchecked);
}

std::unique_ptr<Protocol> make_remat(const ProtocolOptions& options) {
  return std::make_unique<RematProtocol>(options);
}

}  // namespace remat
