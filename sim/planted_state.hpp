#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/frame.hpp"

namespace remat {

/// What only a planted fault keeps (RankFault).
struct PlantedState {
  std::vector<WrapperEntry> leaked_entries;      // of entries_outlive_frames
  std::vector<Owned> leaked_placeholders;        // of placeholders_kept
  std::vector<WrapperEntry> unreleased_entries;  // of phase_from_grad_mode

  /// Slots of the latest forward call under a key.
  struct LatestSlots {
    std::uint32_t frame = 0;
    std::int64_t frame_number = 0;  // the place may be another frame's by now
    std::vector<std::uint32_t> slots;
  };
  std::map<std::string, LatestSlots> latest_slots;  // of slots_by_wrapper and slots_by_call

  /// An argument of an excluded region's call that raised.
  struct Mark {
    std::int64_t frame_number = 0;
    const WrapperBegin* wrapper = nullptr;
    std::int64_t call = 0;
    std::size_t input = 0;
  };
  std::map<std::int64_t, Mark> marks;  // by tensor; of marks_not_rolled_back
};

}  // namespace remat
