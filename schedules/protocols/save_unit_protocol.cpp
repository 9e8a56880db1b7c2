#include "schedules/protocols/save_unit_protocol.hpp"

namespace remat {

SaveUnitProtocol::SaveUnitProtocol(const ProtocolOptions& options, UnitRules rules)
    : TorchSacProtocol(options), units_(options.units, rules) {}

RegionMode SaveUnitProtocol::layer(const RegionTraits& traits) const {
  if (units_.is_reentrant(traits.owner)) return RegionMode::no_graph;
  return TorchSacProtocol::layer(traits);
}

/// What a reentrant region hands out in containers gets gradients (I-47).
FrameRules SaveUnitProtocol::frame_rules() const {
  FrameRules rules = TorchSacProtocol::frame_rules();
  rules.tracks_nested_outputs = true;
  return rules;
}

}  // namespace remat
