#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/invariants/facts.hpp"

namespace remat {

// How a write that should not have been is told.

/// `written since, at event 7 (version 0 then, 1 now)`.
std::string writes_since(const Facts& facts, StorageId storage, std::uint32_t version);
/// Where it was kept, its last write, and where that is noticed.
std::vector<std::int64_t> proof_of_write(const Facts& facts, StorageId storage, std::int64_t since,
                                         std::int64_t now);

}  // namespace remat
