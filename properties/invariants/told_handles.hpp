#pragma once

#include <cstdint>

#include "model/flat_map.hpp"
#include "properties/invariants/slots.hpp"

namespace remat {

/// Slots of one input of an excluded region's call share a handle, and with it every fault of their
/// fills: one of them tells it (X3).
class ToldHandles {
 public:
  /// The fault of this slot's fill, or of another with its handle, has been told.
  bool contains(const Slot& slot) const {
    const std::int64_t* packed = told_.find(key(slot));
    return packed != nullptr && *packed == group(slot);
  }
  void insert(const Slot& slot) { told_[key(slot)] = group(slot); }

 private:
  static std::int64_t key(const Slot& slot) {
    const bool shared = slot.excluded && slot.excluded->handle;
    return std::int64_t{shared ? slot.excluded->handle->index() : slot.name.index()} * 2 +
           (shared ? 1 : 0);
  }
  // A name may be used again, of a handle in another frame.
  static std::int64_t group(const Slot& slot) {
    const bool shared = slot.excluded && slot.excluded->handle;
    return shared ? slot.excluded->frame.value_or(-1) : slot.packed_seq;
  }

  FlatMap<std::int64_t> told_;
};

}  // namespace remat
