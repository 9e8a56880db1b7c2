#include "properties/invariants/registry.hpp"

#include <initializer_list>

#include "properties/invariants/boundaries_match.hpp"
#include "properties/invariants/collective_order.hpp"
#include "properties/invariants/diagnostics_sound.hpp"
#include "properties/invariants/gradients_equal_plain.hpp"
#include "properties/invariants/no_deadlock.hpp"
#include "properties/invariants/no_leak_at_step_end.hpp"
#include "properties/invariants/no_use_after_free.hpp"
#include "properties/invariants/offload_lifecycle.hpp"
#include "properties/invariants/op_counts.hpp"
#include "properties/invariants/peak_within_bound.hpp"
#include "properties/invariants/policy_stable.hpp"
#include "properties/invariants/rng_position.hpp"
#include "properties/invariants/saved_lists_match.hpp"
#include "properties/invariants/slot_used_once.hpp"
#include "properties/invariants/stream_order.hpp"
#include "properties/invariants/unpack_follows_replay.hpp"
#include "properties/invariants/version_unchanged.hpp"

namespace remat {
namespace {

constexpr KindSet kinds(std::initializer_list<Kind> wanted) {
  KindSet set{};
  for (const Kind kind : wanted)
    set[static_cast<std::size_t>(kind)] = true;
  return set;
}

using enum Kind;

constexpr InvariantRow rows[] = {
    {"unpack_follows_replay",
     "A slot that holds no tensor is read only after a replay, or a reload, of the same session "
     "filled it.",
     "Caught: backward reads a placeholder whose replay was stopped early, or an offloaded "
     "tensor never loaded.",
     unpack_follows_replay,
     kinds({pack, unpack, unpack_error, remat_rederive, session_clear, step_end})},
    {"slot_used_once",
     "A slot is filled once and handed out once for each session, and hands out what was filled "
     "in.",
     "Caught: dx and dw read one slot under one session; a field overwritten before it was read.",
     slot_used_once,
     kinds({repack, slot_fill, cache_pop, unpack_begin, unpack, unpack_error, field_put, field_get,
            unit_end})},
    {"saved_lists_match",
     "What a replay saves matches forward's saves in order, with dtype, shape, stride, offset "
     "and device.",
     "Caught: a router that picks other experts in the replay, so that a slot comes back in "
     "another shape.",
     saved_lists_match, kinds({repack, slot_fill, unpack, op, unit_end, frame_free, step_end})},
    {"version_unchanged",
     "What is read is at the version at which it was kept or filled; a replay reads what forward "
     "read.",
     "Caught: an input of a region, or a kept output, is written in place between forward and "
     "backward.",
     version_unchanged,
     kinds({mutate, op, pack, unpack, repack, slot_fill, cache_pop, inputs_save,
            inputs_unpack_begin, sac_decide, sac_hit, remat_persist, remat_serve, phase_begin,
            unit_end, unpack_error, error, frame_free, step_end})},
    {"no_use_after_free",
     "What is read is alive: a storage is released once, after its last reader, by its owner.",
     "Caught: a gathered weight is dropped by a hook while a filled slot still points at it.",
     no_use_after_free,
     kinds({storage_free, holder_free, op, unpack_begin, unpack, unpack_error, repack, slot_fill,
            sac_hit, remat_serve, inputs_unpack, cache_pop})},
    {"no_leak_at_step_end",
     "At a step's end nothing of it is owned but parameters, gradients and what the caller "
     "holds; scopes balance.",
     "Caught: replayed values that nobody reads stay with the graph; a hook is left in place by "
     "an early stop.",
     no_leak_at_step_end, kinds({scope_enter, scope_exit, step_begin, step_end})},
    {"gradients_equal_plain",
     "Every gradient, and which are missing, equals the run without checkpointing; refilled "
     "values equal packed ones.",
     "Caught: a parameter gets a contribution twice, or none, while the loss is finite.",
     gradients_equal_plain, kinds({header, grad, zero_grad, repack, slot_fill, unpack, step_end})},
    {"op_counts",
     "Every op and side effect runs as often as the policy says; an effect of forward does not "
     "run in a replay.",
     "Caught: a second replay for dw, a kept op that runs again, batch-norm statistics that move "
     "twice.",
     op_counts, kinds({header, op, side_effect, mutate, unit_end, frame_free, step_end})},
    {"rng_position",
     "A draw in a replay starts where forward's did, and the generator is put back afterwards.",
     "Caught: dropout draws another mask in the replay because the random state was not kept.",
     rng_position,
     kinds({rng, rng_set, op, sac_hit, sac_decide, wrapper_enter, wrapper_exit, region_begin,
            region_end, unit_begin, body_begin, unit_end, frame_free, step_end})},
    {"collective_order",
     "All ranks of a group issue the same collectives in the same order; none is elided on some "
     "ranks only.",
     "Caught: one rank keeps an all_gather, another replays it.", collective_order,
     kinds({collective, step_end})},
    {"no_deadlock",
     "Every rank finishes: none waits in a collective or a receive that another rank never "
     "answers.",
     "Caught: a region is replayed on one rank only, and its all_gather waits for ever.",
     no_deadlock, kinds({collective, send, recv, step_end})},
    {"stream_order",
     "Two accesses to a storage on different streams, one of them a write, are ordered by an "
     "event.",
     "Caught: a block is given to the next reload while the compute stream still reads it.",
     stream_order, kinds({launch, record, wait})},
    {"peak_within_bound",
     "Live bytes stay within the stated bound, at every moment and after forward.",
     "Caught: an alias that offloading skips keeps the whole base alive.", peak_within_bound,
     kinds({header, storage_alloc, op, phase_begin, error, phase_end, step_end})},
    {"offload_lifecycle",
     "What is offloaded goes out and comes back in whole copies that take turns, and slots read it "
     "on the device only.",
     "Caught: backward reads a tensor whose copy back to the device has not ended.",
     offload_lifecycle, kinds({copy_begin, copy_end, unpack, unpack_error})},
    {"boundaries_match",
     "Boundaries and tensor leaves of excluded regions agree in forward and replay; placeholders "
     "are never read as data.",
     "Caught: an op in the replay adds to an output that was not kept, and gets an empty sum.",
     boundaries_match,
     kinds({cache_pop, wrapper_exit, repack, slot_fill, placeholder, placeholder_read,
            remat_placeholder, op, op_error, step_end})},
    {"policy_stable",
     "The decision to keep or to recompute an op call is the same in forward and replay, and on "
     "all "
     "ranks.",
     "Caught: a policy that keeps every second matmul counts on from forward in the replay.",
     policy_stable, kinds({sac_decide, sac_hit, op, collective, unit_end, frame_free, step_end})},
    {"diagnostics_sound",
     "What a save unit keeps too much or too little is told once for each model, and nothing else "
     "is.",
     "Caught: a second model is silent, because the first one's warning was taken for its own.",
     diagnostics_sound,
     kinds({header, unit_begin, unit_end, mark, mutate, op, sac_decide, warning, error, phase_begin,
            phase_end, step_end})},
};

}  // namespace

std::span<const InvariantRow> invariants() {
  return rows;
}

const InvariantRow* invariant_named(std::string_view name) {
  for (const InvariantRow& row : invariants())
    if (row.name == name) return &row;
  return nullptr;
}

std::size_t invariant_place(std::string_view name) {
  std::size_t place = 0;
  for (const InvariantRow& row : invariants()) {
    if (row.name == name) break;
    ++place;
  }
  return place;
}

}  // namespace remat
