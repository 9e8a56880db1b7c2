#include "schedules/registry.hpp"

#include <algorithm>

#include "model/listed.hpp"
#include "schedules/protocols/exclude.hpp"
#include "schedules/protocols/exclude_rederive.hpp"
#include "schedules/protocols/kept_callables.hpp"
#include "schedules/protocols/kept_ops.hpp"
#include "schedules/protocols/markers.hpp"
#include "schedules/protocols/none.hpp"
#include "schedules/protocols/offload.hpp"
#include "schedules/protocols/remat.hpp"
#include "schedules/protocols/torch.hpp"
#include "schedules/protocols/torch_reentrant.hpp"
#include "schedules/protocols/torch_sac.hpp"

namespace remat {
namespace {

const ProtocolRow* row_named(std::string_view name) {
  const std::vector<ProtocolRow>& rows = protocols();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ProtocolRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<ProtocolRow>& protocols() {
  static const std::vector<ProtocolRow> rows = {
      {"none", "no checkpointing: every saved tensor stays", make_none},
      {"torch", "torch's non-reentrant checkpoint (P1)", make_torch},
      {"torch-reentrant", "torch's reentrant checkpoint (P2)", make_torch_reentrant},
      {"torch-sac", "torch's selective checkpoint: kept ops are served (P10)", make_torch_sac},
      {"exclude", "excluded regions run once: what they save and return is kept (P3)",
       make_exclude},
      {"exclude-rederive", "the same, but a replay makes their saved inputs again (P4 to P6)",
       make_exclude_rederive, true},
      {"remat", "torch_remat: saved regions keep what backward or a replay will read (P7)",
       make_remat},
      {"kept-ops",
       "save units that keep ops by their names (P8)",
       make_kept_ops,
       false,
       {.ops = true}},
      {"kept-callables",
       "save units that keep what callables run (P9)",
       make_kept_callables,
       false,
       {.ops = true, .callables = true}},
      {"markers",
       "save units that keep what runs between two markers (P9, the older engine)",
       make_markers,
       false,
       {.intervals = true}},
      {"offload", "no checkpointing: what offload groups keep goes to the host and back (P11)",
       make_offload},
  };
  return rows;
}

std::string known_protocols() {
  return listed(protocols(), &ProtocolRow::name);
}

bool takes_boundaries(std::string_view name) {
  const ProtocolRow* row = row_named(name);
  return row != nullptr && row->has_boundaries;
}

std::optional<OffloadPolicy> offload_policy(std::string_view name, const ProtocolOptions& options) {
  if (options.offload) return OffloadPolicy(*options.offload, options.fault);
  if (name == "offload") return OffloadPolicy({}, options.fault);
  return std::nullopt;
}

UnitKinds unit_kinds(std::string_view name) {
  const ProtocolRow* row = row_named(name);
  return row == nullptr ? UnitKinds() : row->units;
}

std::unique_ptr<Protocol> make_protocol(std::string_view name, const ProtocolOptions& options) {
  const ProtocolRow* row = row_named(name);
  return row == nullptr ? nullptr : row->make(options);
}

}  // namespace remat
