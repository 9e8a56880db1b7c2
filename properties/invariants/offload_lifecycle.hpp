#pragma once

#include <memory>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// O1, I-48. A storage goes out, and comes back, in whole copies that take turns; a slot reads it
/// on the device only, and a replay begins no copy of one that is away. Other readers of what has
/// been released are no_use_after_free's.
std::unique_ptr<Invariant> offload_lifecycle();

}  // namespace remat
