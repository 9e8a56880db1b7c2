#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/rank.hpp"
#include "sim/wrapper_call.hpp"

// Excluded regions in forward: their arguments, what their bodies save, what they leave for the
// replay (protocols.md P3 to P6).

namespace remat {
namespace {

const WrapperBegin::Boundary* recorded_boundary(const WrapperBegin& wrapper, std::size_t leaf) {
  const auto is_of_it = [&](const WrapperBegin::Boundary& boundary) {
    return boundary.leaf == leaf;
  };
  const auto found = std::find_if(wrapper.boundaries.begin(), wrapper.boundaries.end(), is_of_it);
  return found == wrapper.boundaries.end() ? nullptr : &*found;
}

}  // namespace

Flow Rank::run_wrapper(Walk& walk, std::size_t at, const WrapperBegin& wrapper) {
  if (remat_rules_.handles_regions) return run_remat_region(walk, at, wrapper);
  if (!exclusion_rules_.excludes || walk.packs == Packs::plain || !is_left_out(wrapper)) {
    const Flow flow = run(walk, at + 1, wrapper.end);
    for (const WrapperBegin::Boundary& boundary : wrapper.boundaries)
      if (flow == Flow::done) bind(walk, wrapper.outputs[boundary.leaf], boundary.value);
    return flow;
  }
  if (walk.packs == Packs::refills) return skip_wrapper(walk, wrapper);
  return run_excluded(walk, at, wrapper);
}

ShownCall Rank::shown_call(const CheckpointFrame& frame, const WrapperBegin& wrapper,
                           std::int64_t call) const {
  return {.frame = frame.number, .wrapper = wrapper.name, .call = call};
}

/// Where not, a replay gets placeholders for what the wrapper returned.
bool Rank::keeps_outputs(const WrapperBegin& wrapper) const {
  return (wrapper.save_output && exclusion_rules_.keeps_any_output) ||
         !exclusion_rules_.drops_outputs;
}

Tensor Rank::trigger() {
  return leaf(*program_->trigger, OwnerClass::input);
}

/// It came out of an excluded region of the frame, or is a view of what one made.
bool Rank::is_save_output(const CheckpointFrame& frame, const Tensor& tensor) const {
  return frame.save_objects.contains(tensor.id) ||
         frame.saves.by_origin.contains(origin_of(tensor)) ||
         (exclusion_rules_.knows_by_storage &&
          frame.save_storages.contains(ledger_.number(tensor.hold.storage())));
}

Flow Rank::run_excluded(Walk& walk, std::size_t at, const WrapperBegin& wrapper) {
  CheckpointFrame& frame = *frames_[walk.frame];
  if (walk.wrapper != nullptr && !exclusion_rules_.nests) {
    return fail("E-SESSION", "builtins.RuntimeError",
                fmt::format("{} is called inside wrapper {}: excluded regions do not nest",
                            described(frame, wrapper, frame.wrappers[wrapper.name].n_forward),
                            walk.wrapper->wrapper->name));
  }
  WrapperCall call;
  call.wrapper = &wrapper;
  call.frame = walk.frame;
  call.number = frame.wrappers[wrapper.name].n_forward++;
  note_inputs(walk, call);
  const auto packs = std::exchange(walk.packs, Packs::excluded);
  WrapperCall* const outer = std::exchange(walk.wrapper, &call);
  Flow flow = run(walk, at + 1, wrapper.end);
  walk.packs = packs;
  walk.wrapper = outer;
  if (flow == Flow::done) return leave_excluded(walk, call);
  if (error_)
    frame.wrappers[wrapper.name].raised[call.number] = {error_->type, counts_.rng_position};
  if (has(RankFault::marks_not_rolled_back)) keep_marks(call);
  log_->wrapper_exit(shown_call(frame, wrapper, call.number), false,
                     error_ ? std::string_view(error_->type) : "", 0, {});
  return flow;
}

/// What the fault forgets to take back.
void Rank::keep_marks(const WrapperCall& call) {
  for (std::size_t input = 0; input < call.inputs.size(); ++input) {
    planted_.marks[call.inputs[input].object] = {frames_[call.frame]->number, call.wrapper,
                                                 call.number, input};
  }
}

/// Looks at every tensor leaf of the arguments once.
std::vector<ShownInput> Rank::collect_inputs(Walk& walk, WrapperCall& call) {
  const CheckpointFrame& frame = *frames_[call.frame];
  std::vector<ShownInput> shown_inputs;
  for (const WrapperBegin::Input& leaf : call.wrapper->inputs) {
    const Tensor tensor = tensor_of(walk, leaf.value, walk.owner);
    const std::uint32_t storage = tensor.hold.storage();
    const auto is_known = [&](const WrapperCall::Input& known) {
      return known.object == tensor.id;
    };
    WrapperCall::Input input{
        .value = tensor.value,
        .object = tensor.id,
        .storage = ledger_.number(storage),
        .address = storage,
        .version = ledger_.version(storage),
        .is_parameter = program_->buffers[value_of(leaf.value).buffer].role == BufferRole::param,
        .is_save_output = is_save_output(frame, tensor),
        .is_duplicate = std::any_of(call.inputs.begin(), call.inputs.end(), is_known)};
    shown_inputs.push_back({.tensor = shown(tensor),
                            .path = leaf.path,
                            .origin = input.is_duplicate     ? "duplicate"
                                      : input.is_parameter   ? "param"
                                      : input.is_save_output ? "save"
                                                             : "recompute"});
    call.inputs.push_back(input);
    if (has(RankFault::arguments_held))
      frames_[call.frame]->captured_by_fault.push_back(tensor.shared_as(OwnerClass::excl_saved));
  }
  return shown_inputs;
}

void Rank::note_inputs(Walk& walk, WrapperCall& call) {
  const CheckpointFrame& frame = *frames_[call.frame];
  const std::vector<ShownInput> shown_inputs = collect_inputs(walk, call);
  const std::vector<ValueId>& outputs = call.wrapper->outputs;
  call.can_have_boundary =
      walk.grad && std::any_of(outputs.begin(), outputs.end(),
                               [&](ValueId output) { return value_of(output).requires_grad; });
  log_->wrapper_enter(shown_call(frame, *call.wrapper, call.number), false,
                      keeps_outputs(*call.wrapper), shown_inputs);
}

bool Rank::wants_boundary(Walk& walk, std::size_t leaf, ValueId output) const {
  using Boundaries = ExclusionRules::Boundaries;
  switch (exclusion_rules_.boundaries) {
    case Boundaries::none:
      return false;
    case Boundaries::first_leaf:
      return leaf == 0;
    case Boundaries::all_leaves:
      return true;
    case Boundaries::requiring_grad:
      break;
  }
  const Variable* variable = walk.variables.find(output);
  return value_of(output).floating && variable != nullptr && variable->node;
}

/// The body is over: its outputs are put aside for the replay and pass their boundaries.
Flow Rank::leave_excluded(Walk& walk, WrapperCall& call) {
  CheckpointFrame& frame = *frames_[call.frame];
  const WrapperBegin& wrapper = *call.wrapper;
  WrapperEntry entry;
  entry.call = call.number;
  entry.slots = call.slots;
  entry.n_leaves = wrapper.outputs.size();
  if (exclusion_rules_.fills_by_input) {
    const auto input_of = [&](std::uint32_t slot) { return frame.input_slots[slot].input; };
    std::stable_sort(entry.slots.begin(), entry.slots.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return input_of(a) < input_of(b); });
  }
  entry.rng_after = counts_.rng_position;
  Few<ShownTensor> kept;
  for (const ValueId output : wrapper.outputs) {
    if (!keeps_outputs(wrapper)) break;
    Tensor tensor = tensor_of(walk, output, OwnerClass::excl_output);
    entry.versions.push_back(ledger_.version(tensor.hold.storage()));
    entry.requires_grad.push_back(requires_grad(walk, output));
    if (exclusion_rules_.keeps_graph_of_outputs) {
      if (const Variable* variable = find(walk, output))
        entry.nodes.push_back(variable->node.shared());
    }
    kept.push_back(shown(tensor));
    keep_for_offload(walk, KeptAs::cached, tensor);
    entry.outputs.push_back(std::move(tensor));
  }
  const Flow flow = put_boundaries(walk, call, entry);
  const auto n_boundaries = std::count(entry.has_boundary.begin(), entry.has_boundary.end(), true);
  const ShownCall shown_as = shown_call(frame, wrapper, call.number);
  note_outputs(walk, call);
  log_->cache_put(shown_as, std::ssize(wrapper.outputs), std::ssize(call.slots), span_of(kept),
                  keeps_outputs(wrapper));
  if (has(RankFault::slots_by_wrapper) || has(RankFault::slots_by_call)) {
    planted_.latest_slots[planted_key(wrapper, call.number)] = {call.frame, frame.number,
                                                                call.slots};
  }
  frame.wrappers[wrapper.name].entries.push_back(std::move(entry));
  Few<std::int64_t> ids;
  for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf)
    ids.push_back(tensor_of(walk, value_after(wrapper, leaf), walk.owner).id);
  log_->wrapper_exit(shown_as, false, "return", n_boundaries, span_of(ids));
  return flow;
}

/// An identity on the output, which has the slot to ask for.
NodeRef Rank::make_boundary_node(Walk& walk, ValueId output, SavedSlot slot, const CallSite& site) {
  NodeRef ref = tape_.make(tape_.next_seq());
  Node& node = tape_[ref.index()];
  node.is_boundary = true;
  node.site = site;
  node.offload_group = walk.offload_group;
  node.n_outputs = 1;
  node.edges.push_back(edge_to(walk, output));
  node.saves.push_back(std::move(slot));
  return ref;
}

/// Each output leaf goes through an identity whose save belongs to the frame around: the first step
/// of backward past it asks for that save, and so drives the replay.
Flow Rank::put_boundaries(Walk& walk, WrapperCall& call, WrapperEntry& entry) {
  const CheckpointFrame& frame = *frames_[call.frame];
  const WrapperBegin& wrapper = *call.wrapper;
  entry.has_boundary.assign(wrapper.outputs.size(), false);
  if (call.slots.empty() && !wrapper.is_recorded) return Flow::done;
  for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf) {
    const ValueId output = wrapper.outputs[leaf];
    const WrapperBegin::Boundary* recorded = recorded_boundary(wrapper, leaf);
    if (wrapper.is_recorded ? recorded == nullptr : !wants_boundary(walk, leaf, output)) continue;
    const ValueId after = recorded != nullptr ? recorded->value : output;
    entry.has_boundary[leaf] = true;
    const Tensor before = tensor_of(walk, output, walk.owner);
    log_->boundary(shown_call(frame, wrapper, call.number), static_cast<std::int64_t>(leaf), false,
                   before.id);
    SavedSlot slot;
    if (recorded != nullptr && recorded->slot) slot.recorded = &*recorded->slot;
    const Flow flow = pack(walk, trigger(), slot);
    NodeRef ref = make_boundary_node(walk, output, std::move(slot),
                                     site_of(frame).within(wrapper.name, call.number));
    const ValueId shown_as = recorded != nullptr ? after : before.value;
    Tensor passed{before.hold.shared_as(walk.owner), shown_as, log_->book().tensor++};
    log_->boundary_view(before.id, shown(passed));
    walk.variables.set(after, {std::move(passed), std::move(ref), 0, after});
    if (!wrapper.is_recorded) set_requires_grad(walk, after, true);
    if (flow != Flow::done) return flow;
  }
  return Flow::done;
}

/// From here on the outputs are known as an excluded region's.
void Rank::note_outputs(Walk& walk, const WrapperCall& call) {
  CheckpointFrame& frame = *frames_[call.frame];
  for (std::size_t leaf = 0; leaf < call.wrapper->outputs.size(); ++leaf) {
    const Tensor tensor = tensor_of(walk, value_after(*call.wrapper, leaf), walk.owner);
    const std::int64_t storage = ledger_.number(tensor.hold.storage());
    const auto lies_there = [&](const WrapperCall::Input& input) {
      return input.storage == storage;
    };
    frame.save_objects.insert(tensor.id);
    // A body may return an argument, or a view of one: that is a tensor which a replay makes too.
    if (std::none_of(call.inputs.begin(), call.inputs.end(), lies_there))
      frame.save_storages.insert(storage);
    if (!keeps_outputs(*call.wrapper)) frame.unkept[tensor.id] = {call.wrapper, call.number, leaf};
  }
}

/// A write in place hands back the tensor object that it wrote, under whatever identity the new
/// value goes: who knows tensors by the object takes it for the old one.
void Rank::carry_object(Walk& walk, std::int64_t from, std::int64_t to) {
  if (walk.wrapper != nullptr) {
    for (WrapperCall::Input& input : walk.wrapper->inputs)
      if (input.object == from) input.object = to;
  }
  if (walk.packs != Packs::holders && walk.packs != Packs::excluded) return;
  CheckpointFrame& frame = *frames_[walk.frame];
  if (frame.save_objects.contains(from)) frame.save_objects.insert(to);
}

/// The value is an output that nobody keeps, or stands for one: only another excluded region may
/// take it, whole.
Flow Rank::refuse_unkept(Walk& walk, std::string_view reader, ValueId value) {
  const Variable* variable = find(walk, value);
  if (variable == nullptr) return Flow::done;
  const CheckpointFrame& frame = *frames_[walk.frame];
  const Tensor& tensor = variable->tensor;
  const UnkeptOutput* unkept = frame.unkept.find(tensor.id);
  if (unkept == nullptr) return Flow::done;
  log_->placeholder_read(shown_call(frame, *unkept->wrapper, unkept->call),
                         static_cast<std::int64_t>(unkept->leaf), shown(tensor));
  return fail("E-PLACEHOLDER", "builtins.RuntimeError",
              fmt::format("{} reads the placeholder of {} output {}; set save_output or mark "
                          "the consumer",
                          reader, described(frame, *unkept->wrapper, unkept->call), unkept->leaf));
}

Flow Rank::refuse_unkept_inputs(Walk& walk, const OpStatement& op) {
  if (const Flow flow = refuse_unwritten(walk, op); flow != Flow::done) return flow;
  if (!program_->placeholder) return Flow::done;
  const bool is_outside = walk.packs == Packs::plain || walk.packs == Packs::excluded;
  if (is_outside || !exclusion_rules_.excludes || !exclusion_rules_.refuses_placeholders)
    return Flow::done;
  for (const ValueId input : op.inputs) {
    if (const Flow flow = refuse_unkept(walk, op.name, input); flow != Flow::done) return flow;
  }
  return Flow::done;
}

/// A chain's last output leaves the region: whoever comes next reads it.
Flow Rank::refuse_unkept_outputs(Walk& walk, const CheckpointFrame& frame,
                                 const RegionBegin& region) {
  if (frame.wrappers.empty() || !exclusion_rules_.refuses_placeholders) return Flow::done;
  for (const ValueId output : region.outputs) {
    if (const Flow flow = refuse_unkept(walk, "what follows " + region.name, output);
        flow != Flow::done)
      return flow;
  }
  return Flow::done;
}

}  // namespace remat
