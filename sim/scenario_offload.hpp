#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/json_place.hpp"
#include "model/memory_levels.hpp"
#include "schedules/offload_policy.hpp"

namespace remat {

/// What a scenario says of offload: a protocol's `offload`, a machine's `links` (docs/cli.md).

/// true, or {"what": […]}; none for false. Throws InputError that names line and pointer.
std::optional<OffloadOptions> offload_from(const JsonPlace& place);
nlohmann::json written_offload(const OffloadOptions& options);
/// Names for the things in `what`.
std::vector<std::string> offloaded_things();

/// By level: bytes a second and latency. Throws like `offload_from`.
LinkRates links_from(const JsonPlace& place);
/// The levels whose links take any time; an empty object where there is none.
nlohmann::json written_links(const LinkRates& links);

}  // namespace remat
