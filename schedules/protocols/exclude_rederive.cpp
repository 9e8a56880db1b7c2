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
  if (has(ProtocolFault::first_boundary_only)) rules.boundaries = Boundaries::first_leaf;
  if (has(ProtocolFault::all_outputs_dropped)) rules.keeps_any_output = false;
  return rules;
}

bool ExcludeRederiveProtocol::rederives(const InputMatch& match) const {
  if (match.is_parameter || match.is_save_output) return false;
  if (!is_strict()) return match.same_object;
  // Each row of the fallback table: what cannot be proven to come again is kept.
  return match.has_boundary && match.same_storage && match.same_dtype && match.same_version &&
         (match.same_layout || match.is_safe_view);
}

std::unique_ptr<Protocol> make_exclude_rederive(const ProtocolOptions& options) {
  return std::make_unique<ExcludeRederiveProtocol>(options);
}

}  // namespace remat
