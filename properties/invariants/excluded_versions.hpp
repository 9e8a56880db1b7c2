#pragma once

#include <cstdint>

#include "properties/invariants/facts.hpp"
#include "properties/invariants/invariant.hpp"
#include "properties/invariants/told_handles.hpp"

namespace remat {

/// The part of version_unchanged that speaks of excluded regions: rules X6 and X10 of
/// docs/trace-format.md.
class ExcludedVersions {
 public:
  /// `any_write`: the trace has shown a write.
  void observe_fill(const EventView& event, const Facts& facts, const Slot& slot, bool any_write,
                    Report& report);
  /// The event is a cache_pop.
  static void observe_pop(const EventView& event, const Facts& facts, Report& report);

 private:
  void compare(const EventView& event, const Facts& facts, const Slot& slot, std::int64_t at_pack,
               std::int64_t at_fill, Report& report);

  ToldHandles told_;  // whose fill was told
};

}  // namespace remat
