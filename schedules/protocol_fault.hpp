#pragma once

#include <cstdint>

namespace remat {

/// Faults that can be planted in a protocol, each in the one line that it changes, to see whether
/// the invariants name it. Only properties/mutants plants one: no scenario can. Numbers are those
/// of protocols.md §4.2.
enum class ProtocolFault : std::uint8_t {
  none,
  refilled_unchecked,           // M6
  captured_unchecked,           // M6b
  one_replay_for_all_sessions,  // M23
  live_holders_counted,         // M24
  refilled_kept,                // M25
  nested_outputs_lost,          // M26
  collectives_kept,             // M30
  mutating_ops_kept,            // M31
  one_cache_queue,              // M35
  cache_counters_run_on,        // M36
  policy_asked_again,           // M37
  generator_left_after_served,  // M47
  boundaries_dropped,           // M3
  writes_before_pack_ignored,   // M5
  first_boundary_only,          // M4
  last_entry_first,             // M16
  graph_of_outputs_kept,        // M18
  boundaries_on_all_leaves,     // M6c
  dtypes_not_compared,          // M8
  holes_allowed,                // M10
  save_outputs_rederived,       // M11
  parameters_marked,            // M12
  all_outputs_dropped,          // M22
  outputs_persisted_at_once,    // M27
  outputs_known_by_tensor,      // M28
  references_filled_once,       // M29
  markers_end_at_start,         // M32
  markers_end_late,             // M50
  reload_not_awaited,           // M38
  offloads_in_replay,           // M39
  aliases_unprotected,          // M40
  saved_lists_unchecked         // the determinism check never complains
};

}  // namespace remat
