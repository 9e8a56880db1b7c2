#pragma once

#include <optional>
#include <string>

#include "model/flat_map.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Ids must be described before they are used: a tensor by the event that shows it, a slot by its
/// pack, a frame by its creation or its region's begin. A storage need not be: one that is first
/// seen in use was there before the trace began (U1). And a repack may name a slot that was never
/// packed: that is a finding of saved_lists_match, not a malformed file.
class ReferenceCheck {
 public:
  /// What is wrong with the event's references, with a JSON pointer; none where all are described.
  /// Remembers what the event describes.
  std::optional<std::string> observe(const EventView& event);

 private:
  void describe(const TensorView& tensor);
  void describe_all(const EventView& event);
  std::optional<std::string> undescribed(const EventView& event) const;
  std::optional<std::string> undescribed_tensor(const EventView& event) const;

  IdSet tensors_;
  IdSet slots_;  // by name id
  IdSet frames_;
};

}  // namespace remat
