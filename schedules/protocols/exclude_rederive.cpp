#include "schedules/protocols/exclude_rederive.hpp"

namespace remat {

ExclusionRules ExcludeRederiveProtocol::exclusion_rules() const {
  using Boundaries = ExclusionRules::Boundaries;
  ExclusionRules rules = ExcludeProtocol::exclusion_rules();
  rules.rederives = true;
  rules.drops_outputs = true;
  rules.repeats_boundaries = boundaries() == BoundaryPasses::both;
  if (boundaries() == BoundaryPasses::none || has(ProtocolFault::boundaries_dropped))
    rules.boundaries = Boundaries::none;
  if (has(ProtocolFault::boundaries_on_all_leaves)) rules.boundaries = Boundaries::all_leaves;
  if (has(ProtocolFault::first_boundary_only)) rules.boundaries = Boundaries::first_leaf;
  // What a fault lets in is for the invariants to see, not for this guard to stop.
  if (options().fault != ProtocolFault::none) rules.compares_values = false;
  if (has(ProtocolFault::parameters_marked)) rules.compares_versions = false;
  if (has(ProtocolFault::all_outputs_dropped)) rules.keeps_any_output = false;
  return rules;
}

bool ExcludeRederiveProtocol::rederives(const InputMatch& match) const {
  if (match.is_parameter && !has(ProtocolFault::parameters_marked)) return false;
  if (match.is_save_output && !has(ProtocolFault::save_outputs_rederived)) return false;
  if (!is_strict()) return match.same_object;
  // Each row of the fallback table: what cannot be proven to come again is kept.
  const bool same_version = match.same_version || has(ProtocolFault::writes_before_pack_ignored);
  const bool same_dtype =
      match.same_dtype || (has(ProtocolFault::dtypes_not_compared) && match.same_layout);
  const bool is_view = match.is_safe_view || (has(ProtocolFault::holes_allowed) && match.is_within);
  return match.has_boundary && match.same_storage && same_dtype && same_version &&
         (match.same_layout || is_view);
}

std::unique_ptr<Protocol> make_exclude_rederive(const ProtocolOptions& options) {
  return std::make_unique<ExcludeRederiveProtocol>(options);
}

}  // namespace remat
