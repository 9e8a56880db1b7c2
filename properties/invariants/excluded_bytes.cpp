#include "properties/invariants/excluded_bytes.hpp"

#include <algorithm>

#include "model/units.hpp"

namespace remat {
namespace {

void sort_once(std::vector<StorageId>& storages) {
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
}

void add_live(const Facts& facts, std::optional<StorageId> storage, std::vector<StorageId>& into) {
  const LiveStorage* live = storage ? facts.storages().live(*storage) : nullptr;
  if (live != nullptr && !is_outside(live->role)) into.push_back(*storage);
}

}  // namespace

ExcludedHoldings excluded_holdings(const Facts& facts) {
  ExcludedHoldings held;
  facts.slots().each_alive([&](const Slot& slot) {
    if (!slot.excluded) return;
    if (slot.held == Held::saved) add_live(facts, slot.packed.storage, held.kept);
    for (const Fill& fill : slot.fills)
      add_live(facts, fill.what.storage, held.rederived);
  });
  facts.excluded_calls().each_entry([&](std::int64_t, NameId, const ForwardCall& call) {
    for (const KeptOutput& output : call.entry->outputs)
      add_live(facts, output.storage, held.kept);
  });
  sort_once(held.kept);
  sort_once(held.rederived);
  std::erase_if(held.rederived, [&](StorageId storage) {
    return std::binary_search(held.kept.begin(), held.kept.end(), storage);
  });
  return held;
}

std::int64_t live_bytes_of(const std::vector<StorageId>& storages, const Facts& facts) {
  std::int64_t sum = 0;
  for (const StorageId storage : storages) {
    if (const LiveStorage* live = facts.storages().live(storage))
      sum = saturated_sum(sum, live->bytes);
  }
  return sum;
}

}  // namespace remat
