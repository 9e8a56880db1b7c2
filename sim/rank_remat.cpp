#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/offloader.hpp"
#include "sim/rank.hpp"
#include "sim/wrapper_call.hpp"

// Regions of torch_remat: what saved ones leave for a replay, and what a replay makes of them
// (protocols.md P7, observed-torch.md §5).

namespace remat {
namespace {

constexpr std::string_view runtime_error = "builtins.RuntimeError";

bool lies_on(const Program& program, ValueId a, ValueId b) {
  return program.values[a].buffer == program.values[b].buffer;
}

}  // namespace

std::string Rank::described(const CheckpointFrame& frame, const WrapperBegin& region) const {
  return fmt::format("region {} in {}", region.name, described(frame));
}

ShownRegion Rank::shown_region(const CheckpointFrame& frame, const WrapperBegin& region) const {
  return {.frame = frame.number, .name = region.name};
}

Flow Rank::run_remat_region(Walk& walk, std::size_t at, const WrapperBegin& region) {
  if (walk.packs == Packs::plain) return run(walk, at + 1, region.end);
  CheckpointFrame& frame = *frames_[walk.frame];
  if (walk.wrapper != nullptr) {  // the body around is left out of a replay, and this with it
    if (is_left_out(region)) return run(walk, at + 1, region.end);
    return fail("E-STRUCTURE", runtime_error,
                fmt::format("{} is to be recomputed and lies in region {}, which is saved: a "
                            "replay never runs it; save it, or recompute the one around",
                            described(frame, region), walk.wrapper->wrapper->name));
  }
  if (!frame.saves.names.insert(region.name).second) {
    return fail("E-STRUCTURE", runtime_error,
                fmt::format("{}: a second region of this name in one {}; give it another",
                            described(frame, region), walk.is_replay ? "replay" : "forward"));
  }
  if (!is_left_out(region)) return run_recomputed(walk, at, region);
  return walk.is_replay ? skip_saved(walk, region) : run_saved(walk, at, region);
}

/// What it is given must be there when a replay runs it.
Flow Rank::run_recomputed(Walk& walk, std::size_t at, const WrapperBegin& region) {
  CheckpointFrame& frame = *frames_[walk.frame];
  const ShownRegion shown_as = shown_region(frame, region);
  log_->region(true, shown_as, false, walk.is_replay);
  Flow flow = Flow::done;
  if (walk.is_replay && frame.saves.by_name.contains(region.name)) {
    flow = fail("E-STRUCTURE", runtime_error,
                fmt::format("{}: forward saved it, and the replay is to recompute it",
                            described(frame, region)));
  }
  for (const WrapperBegin::Input& input : region.inputs) {
    if (flow == Flow::done) flow = need(walk, input.value);
  }
  if (flow == Flow::done) flow = run(walk, at + 1, region.end);
  log_->region(false, shown_as, false, walk.is_replay);
  return flow;
}

Flow Rank::run_saved(Walk& walk, std::size_t at, const WrapperBegin& region) {
  CheckpointFrame& frame = *frames_[walk.frame];
  WrapperCall call;
  call.wrapper = &region;
  call.frame = walk.frame;
  for (const WrapperBegin::Input& input : region.inputs) {
    if (const Flow flow = require_defined(walk, {input.value}); flow != Flow::done) return flow;
  }
  collect_inputs(walk, call);
  const ShownRegion shown_as = shown_region(frame, region);
  log_->region(true, shown_as, true, false);
  const auto packs = std::exchange(walk.packs, Packs::excluded);
  walk.wrapper = &call;
  const Flow flow = run(walk, at + 1, region.end);
  walk.packs = packs;
  walk.wrapper = nullptr;
  if (flow == Flow::done) keep_record(walk, call);
  log_->region(false, shown_as, true, false);
  return flow;
}

/// What tells which saved region a tensor came out of: the storage, so that a view tells too.
std::int64_t Rank::origin_of(const Tensor& tensor) const {
  return remat_rules_.finds_by_storage ? ledger_.number(tensor.hold.storage()) : tensor.id;
}

void Rank::keep_record(Walk& walk, const WrapperCall& call) {
  CheckpointFrame& frame = *frames_[call.frame];
  const WrapperBegin& region = *call.wrapper;
  SaveRecord& record = frame.saves.by_name[region.name];
  record.region = &region;
  record.slots = call.slots;
  record.rng_after = counts_.rng_position;
  record.outputs.resize(region.outputs.size());
  Few<Tensor> outputs;
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    outputs.push_back(tensor_of(walk, region.outputs[i], walk.owner));
    record.outputs[i].requires_grad = requires_grad(walk, region.outputs[i]);
    frame.saves.by_origin[origin_of(outputs.back())].push_back({&record, i});
  }
  for (const Tensor& output : outputs) {
    // Backward keeps it as it is: then a replay may have it too.
    const std::int64_t storage = ledger_.number(output.hold.storage());
    const bool is_kept = !region.is_recorded && std::count(call.kept_storages.begin(),
                                                           call.kept_storages.end(), storage) > 0;
    if (is_kept || !remat_rules_.persists_on_demand) persist(frame, output);
  }
}

/// A replay will read the value: the region that made it, if one that is saved did, keeps it.
Flow Rank::need(Walk& walk, ValueId value) {
  if (const Flow flow = require_defined(walk, {value}); flow != Flow::done) return flow;
  if (!walk.is_replay) persist(*frames_[walk.frame], tensor_of(walk, value, walk.owner));
  return Flow::done;
}

void Rank::persist(CheckpointFrame& frame, const Tensor& tensor) {
  const auto found = frame.saves.by_origin.find(origin_of(tensor));
  if (found == frame.saves.by_origin.end()) return;
  for (const SaveRecords::Place& place : found->second) {
    SaveRecord::Output& output = place.record->outputs[place.output];
    if (output.is_persisted) continue;
    output.is_persisted = true;
    output.tensor = {tensor.hold.shared_as(OwnerClass::persisted),
                     place.record->region->outputs[place.output], log_->book().tensor++};
    output.version = ledger_.version(tensor.hold.storage());
    if (offloader_ != nullptr) offloader_->keep(KeptAs::cached, tensor, frame.offload_group);
    log_->remat_persist(shown_region(frame, *place.record->region),
                        static_cast<std::int64_t>(place.output), shown(output.tensor));
  }
}

std::string Rank::input_slot_name(const CheckpointFrame& frame, const InputSlot& slot) const {
  if (!remat_rules_.handles_regions) return fmt::format("x{}", slot.number);
  const std::string name = fmt::format("{}:saved_input.{}", slot.wrapper->name, slot.number);
  return slot.wrapper->is_recorded ? name : fmt::format("f{}.{}", frame.number, name);
}

/// An op in a saved region's body saves a tensor: it is kept, or a replay is to bring it.
Flow Rank::pack_saved(Walk& walk, const Tensor& tensor, SavedSlot& slot) {
  WrapperCall& call = *walk.wrapper;
  CheckpointFrame& frame = *frames_[call.frame];
  const ExcludedSlot* recorded = slot.recorded;
  const auto from = recorded != nullptr ? recorded->input : rederived_from(walk, tensor);
  slot.is_excluded = true;
  if (from) {
    slot.number = recorded != nullptr ? recorded->number : std::ssize(call.slots);
    InputSlot& made = add_input_slot(call.frame, *call.wrapper, *from, tensor, slot);
    made.entered_version = call.inputs[*from].version;
    call.slots.push_back(slot.index);
  } else {
    const bool is_numbered = recorded != nullptr && recorded->number >= 0;
    slot.number = is_numbered ? recorded->number : log_->book().excluded_slot++;
    slot.where = SavedSlot::Where::kept;
    slot.kept = tensor.shared_as(OwnerClass::excl_saved);
    keep_for_offload(walk, KeptAs::excluded, tensor);
    slot.version = ledger_.version(tensor.hold.storage());
    call.kept_storages.push_back(ledger_.number(tensor.hold.storage()));
  }
  if (!log_->is_on()) return Flow::done;
  const std::string name = slot_name(slot);
  ShownPlace place{.slot = name, .path = {}};
  if (from) {
    const WrapperBegin::Input& input = call.wrapper->inputs[*from];
    place.path = input.path;
    place.is_view = value_of(input.value).layout != value_of(tensor.value).layout;
  }
  log_->region_pack(shown_region(frame, *call.wrapper), place, shown(tensor, true));
  return Flow::done;
}

/// A replay leaves the body out: it brings what backward will ask for, and hands on what forward
/// kept.
Flow Rank::skip_saved(Walk& walk, const WrapperBegin& region) {
  CheckpointFrame& frame = *frames_[walk.frame];
  const ShownRegion shown_as = shown_region(frame, region);
  log_->region(true, shown_as, true, true);
  const auto leave = [&](Flow flow) {
    log_->region(false, shown_as, true, true);
    return flow;
  };
  const auto found = frame.saves.by_name.find(region.name);
  if (found == frame.saves.by_name.end()) {
    return leave(fail("E-CACHE-MISS", runtime_error,
                      fmt::format("{}: forward left no record of it; forward and replay ran "
                                  "different code, or it was recomputed then, or its body raised",
                                  described(frame, region))));
  }
  SaveRecord& record = found->second;
  restore_generator(record.rng_after);
  Flow flow = rederive_inputs(walk, region, record);
  if (flow == Flow::done) flow = serve_saved(walk, region, record);
  if (region.is_recorded) leave_unwritten(walk, region);
  if (region.hands_over) release_all(walk, body_of(walk, region), region.end);
  return leave(flow);
}

Flow Rank::rederive_inputs(Walk& walk, const WrapperBegin& region, const SaveRecord& record) {
  CheckpointFrame& frame = *frames_[walk.frame];
  for (const std::uint32_t index : record.slots) {
    InputSlot& slot = frame.input_slots[index];
    if (!slot.alive || (slot.was_filled && !remat_rules_.hands_out_once)) continue;
    const WrapperBegin::Input& packed_from = slot.wrapper->inputs[slot.input];
    const std::string name = input_slot_name(frame, slot);
    const bool is_there = std::any_of(
        region.inputs.begin(), region.inputs.end(), [&](const WrapperBegin::Input& input) {
          return input.path == packed_from.path && is_defined(walk, input.value);
        });
    if (!is_there) {
      return fail("E-PATH", runtime_error,
                  fmt::format("{}: input {} is not there in the replay", described(frame, region),
                              packed_from.path));
    }
    Brought brought = bring(walk, region, slot);
    const ShownPlace place{
        .slot = name,
        .path = packed_from.path,
        .is_view = value_of(slot.value).layout != value_of(packed_from.value).layout};
    const bool is_refused = !brought.code.empty();
    log_->remat_rederive(shown_region(frame, region), place, walk.key, shown(brought.tensor, true),
                         is_refused);
    if (is_refused) {
      return fail(brought.code, runtime_error,
                  fmt::format("slot {} of {}, input {}: {}", name, described(frame, region),
                              packed_from.path, brought.why));
    }
    put_in_slot(slot, std::move(brought.tensor));
  }
  return Flow::done;
}

Flow Rank::serve_saved(Walk& walk, const WrapperBegin& region, SaveRecord& record) {
  CheckpointFrame& frame = *frames_[walk.frame];
  if (record.outputs.size() != region.outputs.size()) {
    return fail(
        "E-USER", "builtins.ValueError",
        fmt::format("{} is served {} tensors, where its code takes {}", described(frame, region),
                    record.outputs.size(), region.outputs.size()));
  }
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    SaveRecord::Output& output = record.outputs[i];
    const ValueId value = region.outputs[i];
    if (!region.is_recorded) set_requires_grad(walk, value, output.requires_grad);
    if (!output.is_persisted) {
      put_placeholder(walk, region, i);
      continue;
    }
    if (is_offloaded(output.tensor))
      return refuse_offloaded(output.tensor, described(frame, region));
    const std::uint32_t now = ledger_.version(output.tensor.hold.storage());
    if (now != output.version && protocol_->checks_version_of(KeptThing::served)) {
      return fail("E-MUTATED", runtime_error,
                  fmt::format("output {} that {} kept was mutated (version {} to {})", i,
                              described(frame, region), output.version, now));
    }
    log_->remat_serve(shown_region(frame, region), static_cast<std::int64_t>(i), !graph_is_kept_,
                      shown(output.tensor));
    Tensor served{output.tensor.hold.shared_as(walk.owner), value, log_->book().tensor++};
    log_->hook_detach("remat_serve", output.tensor.id, shown(served));
    walk.variables.set(value, {std::move(served), history_of(walk, value), 0, value});
    if (graph_is_kept_) continue;
    output.tensor = {};
    output.is_persisted = false;
  }
  return Flow::done;
}

/// It looks like the output and has no data.
void Rank::put_placeholder(Walk& walk, const WrapperBegin& region, std::size_t output) {
  CheckpointFrame& frame = *frames_[walk.frame];
  const ValueId value = region.outputs[output];
  const std::uint32_t storage = ledger_.allocate(0, BufferRole::none, "placeholder");
  Tensor stands_in{Owned(ledger_, storage, walk.owner), value, log_->book().tensor++};
  frame.placeholders[ledger_.number(storage)] = {&region, 0, output};
  log_->remat_placeholder(shown_region(frame, region), static_cast<std::int64_t>(output),
                          program_->buffers[value_of(value).buffer].bytes, shown(stands_in));
  walk.variables.set(value, {std::move(stands_in), history_of(walk, value), 0, value});
}

/// A placeholder may be looked at through views; whatever reads its data is refused.
Flow Rank::refuse_placeholder_inputs(Walk& walk, const OpStatement& op) {
  if (walk.packs != Packs::refills) return Flow::done;
  const CheckpointFrame& frame = *frames_[walk.frame];
  for (const ValueId input : op.inputs) {
    const Tensor tensor = tensor_of(walk, input, walk.owner);
    const UnkeptOutput* of = frame.placeholders.find(ledger_.number(tensor.hold.storage()));
    const bool is_view =
        !op.writes && std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueId output) {
          return lies_on(*program_, input, output);
        });
    if (of == nullptr || is_view) continue;
    Few<std::int64_t> ids;
    for (const ValueId read : op.inputs)
      ids.push_back(tensor_of(walk, read, walk.owner).id);
    log_->op_error(op.name, runtime_error, span_of(ids));
    return fail("E-PLACEHOLDER", runtime_error,
                fmt::format("{} in replay reads the placeholder of {} output {}; say that a replay "
                            "needs the tensor (needs_tensor), or read it in a region that is "
                            "recomputed",
                            op.name, described(frame, *of->wrapper), of->leaf));
  }
  return Flow::done;
}

/// What a replay is served is forward's own: a write would come there a second time. Autograd
/// refuses those that it sees, of a view that a function of torch_remat's made.
Flow Rank::refuse_served_write(Walk& walk, const OpStatement& op) {
  const bool may_be_served = remat_rules_.handles_regions && walk.packs == Packs::refills;
  if (!may_be_served || !op.writes) return Flow::done;
  const CheckpointFrame& frame = *frames_[walk.frame];
  for (const ValueId input : op.inputs) {
    if (!lies_on(*program_, input, *op.writes)) continue;
    const auto found = frame.saves.by_origin.find(origin_of(tensor_of(walk, input, walk.owner)));
    const bool is_served = found != frame.saves.by_origin.end();
    if (!is_served || !(remat_rules_.refuses_all_writes || requires_grad(walk, input))) continue;
    const SaveRecords::Place& output = found->second.front();
    return fail("E-MUTATED", runtime_error,
                fmt::format("{} in replay writes output {} of {}, which forward kept: it would be "
                            "written twice; write it in a region that is saved",
                            op.name, output.output, described(frame, *output.record->region)));
  }
  return Flow::done;
}

/// Every output of the checkpointed region passes a recompute boundary: the first that backward
/// asks for, and the last that a replay saves.
Flow Rank::put_triggers(Walk& walk, std::uint32_t frame, const RegionBegin& region) {
  if (!remat_rules_.handles_regions || region.tells_boundaries) return Flow::done;
  for (const ValueId output : region.outputs) {
    const Variable* variable = find(walk, output);
    if (variable == nullptr || !variable->node || !value_of(output).floating) continue;
    const Tensor before = variable->tensor.shared_as(walk.owner);
    SavedSlot slot;
    const Flow flow = pack(walk, trigger(), slot);
    NodeRef node = make_boundary_node(walk, output, std::move(slot), site_of(*frames_[frame]));
    Tensor passed{before.hold.shared_as(walk.owner), output, log_->book().tensor++};
    log_->boundary_view(before.id, shown(passed));
    walk.variables.set(output, {std::move(passed), std::move(node), 0, output});
    frames_[frame]->saves.triggers.push_back(output);
    if (flow != Flow::done) return flow;
  }
  return Flow::done;
}

Flow Rank::repeat_triggers(Walk& walk, const CheckpointFrame& frame) {
  for (const ValueId output : frame.saves.triggers) {
    if (find(walk, output) == nullptr || !requires_grad(walk, output)) continue;
    SavedSlot slot;
    const Flow flow = pack(walk, trigger(), slot);
    release(slot);
    if (flow != Flow::done) return flow;
  }
  return Flow::done;
}

}  // namespace remat
