#include "schedules/protocols/exclude.hpp"

namespace remat {

ExclusionRules ExcludeProtocol::exclusion_rules() const {
  ExclusionRules rules{.excludes = true};
  if (!is_strict()) {
    rules.nests = true;
    rules.knows_by_storage = false;
    rules.compares_layouts = false;
    rules.compares_versions = false;
    rules.compares_values = false;
    rules.refuses_placeholders = false;
    rules.restores_generator = false;
    rules.demands_all_entries = false;
    rules.keeps_graph_of_outputs = true;
    rules.fills_by_input = true;
    rules.boundaries = ExclusionRules::Boundaries::all_leaves;
  }
  if (has(ProtocolFault::last_entry_first)) rules.first_entry_first = false;
  if (has(ProtocolFault::graph_of_outputs_kept)) rules.keeps_graph_of_outputs = true;
  if (has(ProtocolFault::generator_left_after_served)) rules.restores_generator = false;
  return rules;
}

bool ExcludeProtocol::checks_version_of(KeptThing thing) const {
  switch (thing) {
    case KeptThing::excluded:
    case KeptThing::rederived:
    case KeptThing::served:
      return is_strict();
    default:
      return TorchProtocol::checks_version_of(thing);
  }
}

std::unique_ptr<Protocol> make_exclude(const ProtocolOptions& options) {
  return std::make_unique<ExcludeProtocol>(options);
}

}  // namespace remat
