#pragma once

#include <cstdint>

namespace remat {

/// Faults that can be planted in the engine's autograd tape and ledger, each in the one line that
/// it changes, to see whether the invariants name it. Only properties/mutants plants one.
enum class RankFault : std::uint8_t {
  none,
  saves_without_owning,   // a saved tensor's storage goes with its last variable
  dropped_graphs_kept,    // a graph dropped by the caller is never freed
  early_stop_ignored,     // a replay runs on past its last save
  generator_not_set,      // a replay draws from wherever the generator stands
  gradients_overwritten,  // a second contribution to a tensor replaces the first
  neighbours_swapped,     // a replay fills the slot beside the right one
  times_from_the_process  // an op takes longer the more ops the process has run
};

}  // namespace remat
