#include "properties/mutants.hpp"

#include <array>

namespace remat {
namespace {

constexpr PlantedFault of(ProtocolFault fault) {
  return {.protocol = fault};
}
constexpr PlantedFault of(RankFault fault) {
  return {.rank = fault};
}

constexpr std::array rows = {
    Mutant{"M1 slots-by-wrapper", "exclude-rederive", "slot_used_once",
           "a wrapper has slots for one call: those of its latest one",
           of(RankFault::slots_by_wrapper)},
    Mutant{"M2 slots-by-call", "exclude-rederive", "slot_used_once",
           "calls of the same number share their slots, whichever invocation they belong to",
           of(RankFault::slots_by_call)},
    Mutant{"M3 drop-boundary", "exclude-rederive", "unpack_follows_replay",
           "no output of an excluded region passes a recompute boundary",
           of(ProtocolFault::boundaries_dropped)},
    Mutant{"M4 boundary-on-first-leaf", "exclude-rederive", "unpack_follows_replay",
           "only the first output of an excluded region passes a recompute boundary",
           of(ProtocolFault::first_boundary_only)},
    Mutant{"M5 writes-before-pack-ignored", "exclude-rederive", "gradients_equal_plain",
           "what a body wrote before saving it is filled with what came in",
           of(ProtocolFault::writes_before_pack_ignored)},
    Mutant{"M6 no-version-check-at-read", "torch", "version_unchanged",
           "a refilled slot is handed out though it was written since",
           of(ProtocolFault::refilled_unchecked)},
    Mutant{"M6b captured-without-version", "torch", "version_unchanged",
           "a tensor that reaches a region in a container may be written before the replay",
           of(ProtocolFault::captured_unchecked)},
    Mutant{"M6c boundaries-on-all-leaves", "exclude-rederive", "peak_within_bound",
           "an output that required no grad does behind its boundary, and is saved for",
           of(ProtocolFault::boundaries_on_all_leaves)},
    Mutant{"M6d served-without-grad", "exclude", "error:E-COUNT",
           "what a replay is served requires no grad, so that ops behind it save less",
           of(RankFault::served_without_grad)},
    Mutant{"M7 matched-by-address", "exclude-rederive", "gradients_equal_plain",
           "a tensor that lies where a freed argument lay is taken for the argument",
           of(RankFault::matched_by_address)},
    Mutant{"M8 dtypes-not-compared", "exclude-rederive", "saved_lists_match",
           "an argument's bytes read as another type are filled as what the argument is",
           of(ProtocolFault::dtypes_not_compared)},
    Mutant{"M9 absolute-offsets", "exclude-rederive", "gradients_equal_plain",
           "a view of an argument is brought from where it lay in forward's storage",
           of(RankFault::absolute_offsets)},
    Mutant{"M10 holes-allowed", "exclude-rederive", "gradients_equal_plain",
           "a view over the holes of an argument is brought from it",
           of(ProtocolFault::holes_allowed)},
    Mutant{"M11 save-outputs-rederived", "exclude-rederive", "boundaries_match",
           "what another excluded region made, and a replay may not have, is brought by it",
           of(ProtocolFault::save_outputs_rederived)},
    Mutant{"M12 parameters-marked", "exclude-rederive", "version_unchanged",
           "a parameter gets a slot, and is not looked at when it is filled",
           of(ProtocolFault::parameters_marked)},
    Mutant{"M13 paths-by-equality", "exclude-rederive", "gradients_equal_plain",
           "a slot is filled from the first argument that looks like the right one",
           of(RankFault::paths_by_equality)},
    Mutant{"M14 marks-not-rolled-back", "exclude-rederive", "unpack_follows_replay",
           "what a call that raised was given still counts as its input",
           of(RankFault::marks_not_rolled_back)},
    Mutant{"M15 arguments-held", "exclude-rederive", "peak_within_bound",
           "what an excluded region was given stays until its frame goes",
           of(RankFault::arguments_held)},
    Mutant{"M16 last-entry-first", "exclude", "slot_used_once",
           "the calls of an excluded region are served in the opposite order",
           of(ProtocolFault::last_entry_first)},
    Mutant{"M17 entries-outlive-frames", "exclude", "no_leak_at_step_end",
           "entries that a replay did not use hang on, though their frame is gone",
           of(RankFault::entries_outlive_frames)},
    Mutant{"M18 cached-output-not-detached", "exclude", "no_leak_at_step_end",
           "a kept output holds on to its graph, which holds on to the frame",
           of(ProtocolFault::graph_of_outputs_kept)},
    Mutant{"M19 one-placeholder", "exclude-rederive", "boundaries_match",
           "one placeholder, and one boundary, stands for all outputs of a call",
           of(RankFault::one_placeholder)},
    Mutant{"M20 trigger-without-grad", "exclude-rederive", "boundaries_match",
           "a placeholder passes no boundary: the trigger requires no grad",
           of(RankFault::trigger_without_node)},
    Mutant{"M21 placeholders-kept", "exclude-rederive", "no_leak_at_step_end",
           "each call gets a placeholder of its own, which stays",
           of(RankFault::placeholders_kept)},
    Mutant{"M22 last-output-dropped", "exclude-rederive", "boundaries_match",
           "the last excluded region of a chain keeps no output either",
           of(ProtocolFault::all_outputs_dropped)},
    Mutant{"M23 key-by-frame-only", "torch", "unpack_follows_replay",
           "one replay of a frame serves every graph task",
           of(ProtocolFault::one_replay_for_all_sessions)},
    Mutant{"M24 early-stop-counts-live-holders", "torch", "unpack_follows_replay",
           "a replay ends after as many packs as there are live holders",
           of(ProtocolFault::live_holders_counted)},
    Mutant{"M25 keep-recomputed", "torch", "peak_within_bound",
           "a refilled tensor stays in its slot once it was read",
           of(ProtocolFault::refilled_kept)},
    Mutant{"M26 flatten-inputs-only", "torch-reentrant", "gradients_equal_plain",
           "outputs in containers get no gradient", of(ProtocolFault::nested_outputs_lost)},
    Mutant{"M27 outputs-persisted-at-once", "remat", "peak_within_bound",
           "a saved region keeps all that it returns, whether a replay will read it or not",
           of(ProtocolFault::outputs_persisted_at_once)},
    Mutant{"M28 outputs-known-by-tensor", "remat", "boundaries_match",
           "a view of what a saved region returned is not known as its output",
           of(ProtocolFault::outputs_known_by_tensor)},
    Mutant{"M29 references-filled-once", "remat", "unpack_follows_replay",
           "what a replay brought stays when it was read, and the next replay brings nothing",
           of(ProtocolFault::references_filled_once)},
    Mutant{"M31 keep-mutating-op", "torch-sac", "gradients_equal_plain",
           "what an in-place op returns is kept, and its write left out of the replay",
           of(ProtocolFault::mutating_ops_kept)},
    Mutant{"M35 one-queue-for-all-ops", "torch-sac", "gradients_equal_plain",
           "kept outputs are served in the order of all calls, not of each op's",
           of(ProtocolFault::one_cache_queue)},
    Mutant{"M36 counters-not-reset", "torch-sac", "error:E-CACHE-MISS",
           "a replay counts an op's calls on from forward's",
           of(ProtocolFault::cache_counters_run_on)},
    Mutant{"M37 count-policy-not-split", "torch-sac", "policy_stable",
           "a policy that counts calls is asked again in the replay, and counts on",
           of(ProtocolFault::policy_asked_again)},
    Mutant{"M47 generator-left-after-served", "torch-sac", "rng_position",
           "the generator is not put where a served op would have left it",
           of(ProtocolFault::generator_left_after_served)},
    Mutant{"X1 saved-lists-unchecked", "torch", "saved_lists_match",
           "what a replay saves is not held against what forward saved",
           of(ProtocolFault::saved_lists_unchecked)},
    Mutant{"X2 saves-without-owning", "", "no_use_after_free",
           "autograd looks at a saved tensor's storage and does not keep it",
           of(RankFault::saves_without_owning)},
    Mutant{"X3 dropped-graphs-kept", "", "no_leak_at_step_end",
           "a graph that nobody needs any more is never freed", of(RankFault::dropped_graphs_kept)},
    Mutant{"X4 early-stop-ignored", "torch", "op_counts", "a replay runs on past its last save",
           of(RankFault::early_stop_ignored)},
    Mutant{"X5 generator-not-set", "", "rng_position",
           "a replay draws from wherever the generator stands", of(RankFault::generator_not_set)},
    Mutant{"X6 gradients-overwritten", "", "gradients_equal_plain",
           "a second contribution to a tensor replaces the first",
           of(RankFault::gradients_overwritten)},
    Mutant{"X7 neighbours-swapped", "torch", "slot_used_once",
           "a replay fills the slot beside the right one", of(RankFault::neighbours_swapped)},
    Mutant{"X8 times-from-the-process", "", "selfcheck",
           "an op takes longer the more ops the process has run",
           of(RankFault::times_from_the_process)},
};

}  // namespace

std::span<const Mutant> mutants() {
  return rows;
}

const Mutant* mutant_named(std::string_view name) {
  for (const Mutant& mutant : rows) {
    const std::string_view number = mutant.name.substr(0, mutant.name.find(' '));
    if (mutant.name == name || number == name) return &mutant;
  }
  return nullptr;
}

}  // namespace remat
