#pragma once

#include <cstdint>

namespace remat {

/// Faults that can be planted in the engine's autograd tape and ledger, each in the one line that
/// it changes, to see whether the invariants name it. Only properties/mutants plants one.
enum class RankFault : std::uint8_t {
  none,
  saves_without_owning,      // a saved tensor's storage goes with its last variable
  dropped_graphs_kept,       // a graph dropped by the caller is never freed
  early_stop_ignored,        // a replay runs on past its last save
  generator_not_set,         // a replay draws from wherever the generator stands
  gradients_overwritten,     // a second contribution to a tensor replaces the first
  slots_by_wrapper,          // M1: a replay fills what the wrapper's latest call left, wherever
  slots_by_call,             // M2: or its latest call of that number
  matched_by_address,        // M7: a storage where a freed argument lay is taken for the argument
  absolute_offsets,          // M9: a view lies where it lay in forward's storage
  paths_by_equality,         // M13: a slot is filled from the first argument of its layout
  served_without_grad,       // M6d: what a replay is served requires no grad
  marks_not_rolled_back,     // M14: arguments of a call that raised still count as its inputs
  arguments_held,            // M15: what excluded regions were given stays with their frame
  entries_outlive_frames,    // M17
  one_placeholder,           // M19: for all outputs of a call, and one boundary
  trigger_without_node,      // M20: a placeholder passes no boundary
  placeholders_kept,         // M21: a new one for each call, for ever
  unit_scope_left,           // M33: a callable that raised still counts as running
  units_of_forward,          // M34: a replay asks with what was in force when forward ended
  diagnostics_told_once,     // M48: of all models together
  phase_from_grad_mode,      // M49: a replay is one by whether autograd is on, as it was in forward
  collectives_kept_by_rank,  // every second rank keeps none
  collectives_left_out,      // of replays, on every second rank
  copies_unordered,          // the compute stream waits for no copy back to the device
  neighbours_swapped,        // a replay fills the slot beside the right one
  times_from_the_process     // an op takes longer the more ops the process has run
};

}  // namespace remat
