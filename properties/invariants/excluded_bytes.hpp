#pragma once

#include <cstdint>
#include <vector>

#include "properties/invariants/facts.hpp"

namespace remat {

/// What excluded regions hold alive, each storage once: what their forward kept, and what a replay
/// rederived for them. Source: protocols.md §1, "resident SAVE activation / replay-rederived
/// input".
struct ExcludedHoldings {
  std::vector<StorageId> kept;       // saves of a body and kept outputs, ascending
  std::vector<StorageId> rederived;  // inputs in filled slots that are not kept, ascending
};

/// Outside roles are left out, as in all counts of bytes.
ExcludedHoldings excluded_holdings(const Facts& facts);
/// Bytes of those of the storages that are alive.
std::int64_t live_bytes_of(const std::vector<StorageId>& storages, const Facts& facts);

}  // namespace remat
