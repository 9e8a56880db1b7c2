#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/action_table.hpp"

namespace remat {

/// Activations are counted in hundredths of those of one chunk and micro-batch (slice), so that a
/// part of one can be freed early.
constexpr std::int64_t whole_activation = 100;

/// What of its activations a DX frees; the rest goes with DW. B frees all. In hundredths.
struct FreedEarly {
  std::int64_t by_dx = 0;
};

/// What one rank holds while it runs its list. An entry's own activations count from its start, and
/// until its end what it frees.
struct RankMemory {
  std::int64_t peak = 0;                 // from R on where there is one, else from F on
  std::int64_t peak_checkpoints = 0;     // what F keeps for R, until B or DX
  std::vector<std::int64_t> held;        // during each entry of the list, the activations
  std::vector<std::int64_t> held_after;  // and behind it
};
std::vector<RankMemory> memory_of(const ActionTable& table, const FreedEarly& freed);

/// An entry of a list that would exceed a limit, and the next behind it that frees something; none:
/// nothing does.
struct OverLimit {
  std::size_t place = 0;
  std::optional<std::size_t> freed_at;
};
/// The first one of a rank's list.
std::optional<OverLimit> first_over(const RankMemory& memory, std::int64_t limit);

}  // namespace remat
