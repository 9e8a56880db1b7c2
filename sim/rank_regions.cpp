#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/rank.hpp"

// Regions in forward, and where what they save goes.

namespace remat {
namespace {

constexpr std::string_view stop_error = "_StopRecomputationError";

std::string_view ended_by(Flow flow, const std::optional<SimulatedError>& error) {
  if (flow == Flow::done) return "return";
  return flow == Flow::stopped || !error ? stop_error : std::string_view(error->type);
}

}  // namespace

const RegionBegin& Rank::region_of(std::size_t forward, std::size_t begin) const {
  return std::get<RegionBegin>(program_->forwards[forward].statements[begin]);
}

Flow Rank::run_region(Walk& walk, std::size_t at, const RegionBegin& region) {
  for (const std::vector<ValueId>* values : {&region.inputs, &region.captured}) {
    if (const Flow flow = require_defined(walk, *values); flow != Flow::done) return flow;
  }
  RegionMode mode = RegionMode::plain;
  if (region.kind == RegionKind::checkpointed && walk.grad) {
    mode = protocol_->region({.reentrant = region.reentrant,
                              .early_stop = region.early_stop,
                              .owner = region.owner,
                              .layer = region.layer});
  }
  switch (mode) {
    case RegionMode::plain:
      return run_plain_region(walk, at, region);
    case RegionMode::holders:
      return run_checkpointed(walk, at, region);
    case RegionMode::no_graph:
      return run_reentrant(walk, at, region);
  }
  return Flow::done;
}

Flow Rank::run_plain_region(Walk& walk, std::size_t at, const RegionBegin& region) {
  log_->push_unit(region.name, region.invocation);
  log_->unit_begin(std::nullopt, false, false, false, std::nullopt);
  walk.units.callables.push_back(region.name);
  const Flow flow = run(walk, at + 1, region.end);
  const bool stays = flow == Flow::failed && has(RankFault::unit_scope_left);
  if (!stays) walk.units.callables.pop_back();
  log_->unit_end(std::nullopt, false, false, false, ended_by(flow, error_));
  log_->pop_unit();
  return flow;
}

Flow Rank::run_checkpointed(Walk& walk, std::size_t at, const RegionBegin& region) {
  if (!frame_rules_.nests && walk.packs != Packs::plain) {
    return fail("E-STRUCTURE", "builtins.NotImplementedError",
                fmt::format("{} lies in {}: checkpointed regions do not nest", region.name,
                            described(*frames_[walk.frame])));
  }
  const std::uint32_t index = make_frame(walk, at, region);
  CheckpointFrame& frame = *frames_[index];
  frame.flipped = walk.flipped;
  frame.is_compiled = walk.is_compiled;
  frame.offload_group = walk.offload_group;
  if (!walk.is_replay) {
    frame.invocation = region.invocation ? *region.invocation : counts_.invocations[region.name]++;
  }
  log_->push_unit(region.name, frame.invocation);
  log_->unit_begin(frame.number, false, true, false, std::nullopt, region.owner);
  log_->frame_create(frame.number, frame.early_stop);
  Flow flow = save_inputs(walk, index, region);
  if (flow == Flow::done) flow = refuse_under_session(region);
  if (flow == Flow::done) {
    const auto packs = std::exchange(walk.packs, Packs::holders);
    const auto outer = std::exchange(walk.frame, index);
    const auto cache_of = std::exchange(walk.cache_of, index);
    const bool serves = std::exchange(walk.serves, false);
    WrapperCall* const wrapper = std::exchange(walk.wrapper, nullptr);
    // Markers are a region's own; a callable that has been entered goes on in it.
    UnitState outside = std::exchange(walk.units, {});
    walk.units.callables = outside.callables;
    log_->body_begin(frame.number, walk.is_replay);
    frame.rng_position = counts_.rng_position;
    flow = run(walk, at + 1, region.end);
    if (flow == Flow::done) flow = refuse_unkept_outputs(walk, frame, region);
    if (flow == Flow::done) flow = put_triggers(walk, index, region);
    walk.packs = packs;
    walk.frame = outer;
    walk.cache_of = cache_of;
    walk.serves = serves;
    walk.wrapper = wrapper;
    if (flow == Flow::done) end_pass(walk, frame);
    frame.units_at_end = std::exchange(walk.units, std::move(outside));
  }
  frame.forward_done = true;
  log_->unit_end(frame.number, false, true, false, ended_by(flow, error_));
  log_->pop_unit();
  if (flow != Flow::done && !frame.wrappers.empty()) end_entries(frame, flow);
  if (frame.is_over()) free_frame(index);
  return flow;
}

/// The region's tensor arguments are kept as saved tensors, by the hooks around it.
Flow Rank::save_inputs(Walk& walk, std::uint32_t index, const RegionBegin& region) {
  std::vector<std::int64_t> ids;
  ids.reserve(region.inputs.size());
  for (std::size_t i = 0; i < region.inputs.size(); ++i) {
    const ValueId input = region.inputs[i];
    SavedSlot slot;
    slot.is_region_input = true;
    if (i < region.input_slots.size()) slot.recorded = &region.input_slots[i];
    const Flow flow = pack(walk, tensor_of(walk, input, walk.owner), slot);
    frames_[index]->inputs.push_back(std::move(slot));
    if (flow != Flow::done) return flow;
    ids.push_back(tensor_of(walk, input, walk.owner).id);
  }
  CheckpointFrame& frame = *frames_[index];
  for (const ValueId captured : region.captured) {
    frame.captured.push_back(tensor_of(walk, captured, OwnerClass::region_input));
    frame.captured_versions.push_back(ledger_.version(frame.captured.back().hold.storage()));
    hold_on_device(walk, frame.captured.back());
  }
  for (const RegionBegin::Param& param : region.params) {
    const Tensor tensor = tensor_of(walk, param.value, OwnerClass::param);
    frame.param_versions.push_back(ledger_.version(tensor.hold.storage()));
  }
  log_->inputs_save(frame.number, ids, static_cast<std::int64_t>(region.captured.size()));
  return Flow::done;
}

/// What the body reads past its arguments gets no gradient from a reentrant region; nor does
/// anything where no argument requires grad, parameters included.
bool Rank::loses_gradients(const RegionBegin& region, bool requires_grad) const {
  const auto wants = [&](ValueId value) { return value_of(value).requires_grad; };
  if (std::any_of(region.captured.begin(), region.captured.end(), wants)) return true;
  const auto is_wanted = [&](const RegionBegin::Param& param) { return wants(param.value); };
  return !requires_grad && std::any_of(region.params.begin(), region.params.end(), is_wanted);
}

Flow Rank::run_reentrant(Walk& walk, std::size_t at, const RegionBegin& region) {
  auto call = std::make_unique<ReentrantCall>();
  call->forward = walk.forward;
  call->begin = at;
  call->invocation = region.invocation ? *region.invocation : counts_.invocations[region.name]++;
  const CallSite site{.unit = region.name, .invocation = call->invocation, .wrapper = {}};
  call->rng_position = counts_.rng_position;
  call->flipped = walk.flipped;
  call->is_compiled = walk.is_compiled;
  for (const ValueId captured : region.captured) {
    call->captured.push_back(tensor_of(walk, captured, OwnerClass::region_input));
    hold_on_device(walk, call->captured.back());
  }
  NodeRef ref = tape_.make(tape_.next_seq());  // the node is older than its body
  std::vector<Edge> edges;
  edges.reserve(region.inputs.size());
  bool requires_grad = false;
  std::vector<Tensor> arguments;  // alive as long as the call, whatever its body lets go of
  for (const ValueId input : region.inputs) {
    arguments.push_back(tensor_of(walk, input, OwnerClass::region_input));
    edges.push_back(edge_to(walk, input));
    requires_grad |= edges.back().node || edges.back().leaf;
  }
  if (protocol_->refuses_lost_gradients() && loses_gradients(region, requires_grad)) {
    return fail(
        "E-GRAD-NONE", "builtins.RuntimeError",
        fmt::format("{}: a reentrant region hands gradients to its tensor arguments only, "
                    "and reads a tensor that requires grad past them{}",
                    described(site), requires_grad ? "" : "; none of its arguments requires grad"));
  }
  log_->push_unit(region.name, call->invocation);
  log_->unit_begin(std::nullopt, false, true, true, std::nullopt);
  const bool grad = std::exchange(walk.grad, false);
  Flow flow = run(walk, at + 1, region.end);
  walk.grad = grad;
  std::vector<SavedSlot> saves;
  for (const Tensor& argument : arguments) {
    if (flow != Flow::done || !requires_grad) break;
    SavedSlot slot;
    slot.is_region_input = true;
    flow = pack(walk, argument, slot);
    saves.push_back(std::move(slot));
  }
  log_->unit_end(std::nullopt, false, true, true, ended_by(flow, error_));
  log_->pop_unit();
  if (flow == Flow::failed) {  // whoever catches it has no output to go back from
    for (SavedSlot& slot : saves)
      release(slot);
    return flow;
  }
  if (!requires_grad) return flow;  // then its output does not either
  Node& node = tape_[ref.index()];
  node.reentrant = std::move(call);
  node.site = site;
  node.offload_group = walk.offload_group;
  node.edges = std::move(edges);
  node.saves = std::move(saves);
  node.n_outputs = static_cast<std::uint32_t>(region.outputs.size());
  for (std::uint32_t j = 0; j < region.outputs.size(); ++j) {
    Variable* variable = find(walk, region.outputs[j]);
    if (variable == nullptr) continue;
    if (value_of(region.outputs[j]).in_container && !frame_rules_.tracks_nested_outputs) continue;
    variable->node = ref.shared();
    variable->output = j;
  }
  return flow;
}

Flow Rank::pack(Walk& walk, const Tensor& tensor, SavedSlot& slot) {
  ++counts_.hook_calls;
  if (walk.packs == Packs::excluded) return pack_excluded(walk, tensor, slot);
  if (walk.packs == Packs::refills)
    return refill(walk, tensor.shared_as(OwnerClass::recomputed), slot);
  if (walk.packs == Packs::holders) {
    CheckpointFrame& frame = *frames_[walk.frame];
    slot.where = SavedSlot::Where::holder;
    slot.frame = walk.frame;
    slot.index = static_cast<std::uint32_t>(frame.holders.size());
    frame.holders.push_back({true, tensor.value, element_of(tensor)});
    ++frame.n_alive;
    if (log_->is_on()) {
      log_->pack(slot_name(slot), frame.number, slot.index, "checkpointed", true,
                 shown(tensor, true), program_->trigger == tensor.value);
    }
    return Flow::done;
  }
  slot.where = SavedSlot::Where::kept;
  const OwnerClass owner =
      slot.is_region_input ? OwnerClass::region_input : OwnerClass::outer_saved;
  slot.kept = tensor.shared_as(has(RankFault::saves_without_owning) ? OwnerClass::nobody : owner);
  slot.version = ledger_.version(slot.kept.hold.storage());
  keep_for_offload(walk, slot.is_region_input ? KeptAs::region_input : KeptAs::saved, tensor);
  slot.number = log_->book().plain_slot++;
  if (log_->is_on()) {
    log_->pack(slot_name(slot), std::nullopt, std::nullopt,
               slot.is_region_input ? "unit_input" : "plain", false, shown(slot.kept, true));
  }
  return Flow::done;
}

/// A replay packs: the tensor goes where forward's holder of the same place can find it.
Flow Rank::refill(Walk& walk, Tensor tensor, SavedSlot& slot) {
  CheckpointFrame& frame = *frames_[walk.frame];
  ReplaySession& session = session_of(frame, walk.key);
  // The replay's own graph keeps it too, until the replay is over.
  slot.where = SavedSlot::Where::kept;
  slot.kept = tensor.shared_as(OwnerClass::replay_tmp);
  slot.version = ledger_.version(tensor.hold.storage());
  const PackState state{.early_stop = frame.early_stop,
                        .forward_done = frame.forward_done,
                        .index = session.n_packed,
                        .n_forward = forward_packs(frame)};
  const PackDecision decision = protocol_->pack(state);
  ++session.n_packed;
  if (decision == PackDecision::pass) {
    session.surplus_passed = true;
    return Flow::done;
  }
  if (decision == PackDecision::too_many) {
    return fail("E-MORE", checkpoint_error(frame),
                fmt::format("{}: the replay saves more than the {} tensors of forward",
                            described(frame), frame.holders.size()));
  }
  const auto index = static_cast<std::size_t>(state.index);
  const Holder& holder = frame.holders[index];
  const ProgramValue& packed = value_of(holder.value);
  const ProgramValue& now = value_of(tensor.value);
  const bool has_data = !frame.placeholders.contains(ledger_.number(tensor.hold.storage()));
  log_->repack(frame.number, state.index, state.n_forward, walk.key, holder.alive,
               shown(tensor, has_data), program_->trigger == tensor.value);
  if (holder.alive) {
    session.metadata_equal &=
        packed.layout.dtype == now.layout.dtype && packed.layout.shape == shape_of(tensor);
    if (protocol_->checks_values()) session.metadata_equal &= holder.element == element_of(tensor);
    if (session.slots.size() < frame.holders.size()) session.slots.resize(frame.holders.size());
    const bool swaps = has(RankFault::neighbours_swapped) && (index ^ 1U) < session.slots.size();
    Refilled& filled = session.slots[swaps ? index ^ 1U : index];
    filled.version = slot.version;
    filled.filled = true;
    filled.tensor = std::move(tensor);
  }
  if (decision != PackDecision::store_and_stop || has(RankFault::early_stop_ignored))
    return Flow::done;
  log_->early_stop(frame.number, walk.key, session.n_packed, state.n_forward);
  return Flow::stopped;
}

}  // namespace remat
