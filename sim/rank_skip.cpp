#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/rank.hpp"

// Excluded regions in a replay: their bodies are skipped, their slots filled, their outputs served
// (protocols.md P3 to P6).

namespace remat {
namespace {

std::string shown_layout(const TensorLayout& layout) {
  return fmt::format("{}[{}] strides [{}]", layout.dtype, fmt::join(layout.shape, ", "),
                     fmt::join(layout.stride, ", "));
}

}  // namespace

Flow Rank::skip_wrapper(Walk& walk, const WrapperBegin& wrapper) {
  CheckpointFrame& frame = *frames_[walk.frame];
  WrapperCalls& calls = frame.wrappers[wrapper.name];
  const std::int64_t call = calls.n_replayed++;
  const ShownCall shown_as = shown_call(frame, wrapper, call);
  std::vector<ShownInput> inputs;
  for (const WrapperBegin::Input& input : wrapper.inputs) {
    if (require_defined(walk, {input.value}) != Flow::done) break;
    inputs.push_back({shown(tensor_of(walk, input.value, walk.owner)), input.path, {}});
  }
  log_->wrapper_enter(shown_as, true, keeps_outputs(wrapper), inputs);
  std::int64_t n_boundaries = 0;
  const auto leave = [&](Flow flow) {
    Few<std::int64_t> ids;
    for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf) {
      const Variable* variable = find(walk, value_after(wrapper, leaf));
      if (flow == Flow::done && variable != nullptr) ids.push_back(variable->tensor.id);
    }
    log_->wrapper_exit(shown_as, true,
                       flow == Flow::done      ? "return"
                       : flow == Flow::stopped ? "_StopRecomputationError"
                                               : std::string_view(error_->type),
                       n_boundaries, span_of(ids));
    return flow;
  };
  if (error_ && error_->code == "E-UNKNOWN") return leave(Flow::failed);
  if (error_) {
    // The argument has no value in this run of the region: its place leads nowhere.
    if (exclusion_rules_.rederives) error_->code = "E-PATH";
    error_->message =
        fmt::format("{}: input {} is not a tensor in the replay", described(frame, wrapper, call),
                    wrapper.inputs[inputs.size()].path);
    return leave(Flow::failed);
  }
  if (const auto raised = calls.raised.find(calls.n_in_replay++); raised != calls.raised.end()) {
    restore_generator(raised->second.rng_after);
    return leave(raise_error(raised->second.type, fmt::format("raised by {} in forward",
                                                              described(frame, wrapper, call))));
  }
  if (calls.entries.empty()) {
    log_->cache_pop(shown_as, std::nullopt, 0, false, {}, 0);
    return leave(fail("E-CACHE-MISS", "builtins.RuntimeError",
                      fmt::format("{}: no forward entry; the replay ran {} calls, forward {}",
                                  described(frame, wrapper, call), call + 1, calls.n_forward)));
  }
  const bool takes_first = exclusion_rules_.first_entry_first;
  WrapperEntry entry = std::move(takes_first ? calls.entries.front() : calls.entries.back());
  takes_first ? calls.entries.pop_front() : calls.entries.pop_back();
  Few<std::int64_t> served;
  for (const Tensor& output : entry.outputs)
    served.push_back(output.id);
  log_->cache_pop(shown_as, entry.call, static_cast<std::int64_t>(entry.n_leaves),
                  keeps_outputs(wrapper), span_of(served), std::ssize(calls.entries));
  Flow flow = fill_slots(walk, wrapper, entry, call);
  if (flow == Flow::done) flow = serve_outputs(walk, wrapper, entry, call);
  if (wrapper.is_recorded) leave_unwritten(walk, wrapper);
  if (flow == Flow::done) restore_generator(entry.rng_after);
  if (flow == Flow::done) flow = repeat_boundaries(walk, wrapper, entry, call, n_boundaries);
  if (wrapper.hands_over) release_all(walk, body_of(walk, wrapper), wrapper.end);
  // M49: autograd was on in forward, so this passes for forward again, which keeps its entries.
  if (has(RankFault::phase_from_grad_mode)) planted_.unreleased_entries.push_back(std::move(entry));
  return leave(flow);
}

/// To where the body that was left out would have put it.
void Rank::restore_generator(std::int64_t position) {
  if (!exclusion_rules_.restores_generator || counts_.rng_position == position) return;
  counts_.rng_position = position;
  log_->rng_set(position);
}

Flow Rank::fill_slots(Walk& walk, const WrapperBegin& wrapper, const WrapperEntry& entry,
                      std::int64_t call) {
  const PlantedState::LatestSlots* latest = latest_slots(wrapper, entry.call);
  const std::vector<std::uint32_t>& slots = latest != nullptr ? latest->slots : entry.slots;
  CheckpointFrame& packed_in = *frames_[latest != nullptr ? latest->frame : walk.frame];
  for (const std::uint32_t index : slots) {
    InputSlot& slot = packed_in.input_slots[index];
    if (const Flow flow = fill(walk, wrapper, slot, {entry.call, call}); flow != Flow::done)
      return flow;
  }
  return Flow::done;
}

/// Where a fault keeps slots under a key that is not the call's own.
std::string Rank::planted_key(const WrapperBegin& wrapper, std::int64_t call) const {
  if (has(RankFault::slots_by_wrapper)) return wrapper.name;
  return has(RankFault::slots_by_call) ? fmt::format("{}#{}", wrapper.name, call) : std::string();
}

/// The slots under the fault's key, while their frame is there; none without the fault.
const PlantedState::LatestSlots* Rank::latest_slots(const WrapperBegin& wrapper,
                                                    std::int64_t call) const {
  if (planted_.latest_slots.empty()) return nullptr;
  const auto found = planted_.latest_slots.find(planted_key(wrapper, call));
  if (found == planted_.latest_slots.end()) return nullptr;
  const std::unique_ptr<CheckpointFrame>& frame = frames_[found->second.frame];
  const bool is_there = frame != nullptr && frame->number == found->second.frame_number;
  return is_there ? &found->second : nullptr;
}

/// What the replay's call has at the path that forward's tensor came in by, seen as what was
/// packed; and why it may not go into the slot.
Brought Rank::bring(Walk& walk, const WrapperBegin& wrapper, const InputSlot& slot) {
  const WrapperBegin::Input& packed_from = slot.wrapper->inputs[slot.input];
  const auto found = std::find_if(
      wrapper.inputs.begin(), wrapper.inputs.end(),
      [&](const WrapperBegin::Input& input) { return input.path == packed_from.path; });
  if (found == wrapper.inputs.end()) return {};
  const CheckpointFrame& frame = *frames_[walk.frame];
  const Tensor from = tensor_of(walk, found->value, walk.owner);
  const std::uint32_t storage = from.hold.storage();
  const TensorLayout& expected = value_of(packed_from.value).layout;
  const TensorLayout& layout = value_of(from.value).layout;
  const bool same_layout = layout.dtype == expected.dtype && layout.shape == expected.shape &&
                           layout.stride == expected.stride;
  const bool same_dtype = value_of(slot.value).layout.dtype == layout.dtype;
  Brought brought;
  brought.from = &*found;
  brought.tensor = {from.hold.shared_as(OwnerClass::slot),
                    same_layout && same_dtype ? slot.value : from.value, log_->book().tensor++};
  brought.tensor.is_astray = has(RankFault::absolute_offsets) && slot.value != packed_from.value &&
                             ledger_.begin(storage) != slot.entered_begin;
  keep_shape(found->value, from.id, brought.tensor);
  const auto refuse = [&](std::string_view code, std::string why) {
    if (!brought.code.empty()) return;
    brought.code = code;
    brought.why = std::move(why);
  };
  const bool is_placeholder =
      from.value == program_->placeholder || frame.placeholders.contains(ledger_.number(storage));
  const bool refuses_placeholders =
      exclusion_rules_.refuses_placeholders || remat_rules_.handles_regions;
  if (refuses_placeholders && is_placeholder)
    refuse("E-PLACEHOLDER", "it would be filled from a placeholder");
  if (exclusion_rules_.compares_layouts && !same_layout) {
    refuse("E-LAYOUT", fmt::format("layout changed: forward {}, replay {}", shown_layout(expected),
                                   shown_layout(layout)));
  }
  if (exclusion_rules_.compares_versions && ledger_.version(storage) != slot.entered_version) {
    refuse("E-LAYOUT", fmt::format("version changed: forward {}, replay {}", slot.entered_version,
                                   ledger_.version(storage)));
  }
  const bool compares_values = exclusion_rules_.compares_values && has(RankFault::none);
  if (compares_values && element_of(brought.tensor) != slot.element)
    refuse("E-LAYOUT", "another tensor of this layout came in: the replay's path differs");
  return brought;
}

void Rank::put_in_slot(InputSlot& slot, Tensor tensor) {
  if (!slot.alive) return;
  slot.filled = slot.was_filled = true;
  slot.fill_version = ledger_.version(tensor.hold.storage());
  slot.tensor = std::move(tensor);
}

Flow Rank::fill(Walk& walk, const WrapperBegin& wrapper, InputSlot& slot, MatchedCalls calls) {
  const CheckpointFrame& frame = *frames_[walk.frame];
  Brought brought = bring(walk, wrapper, slot);
  const std::string& path = slot.wrapper->inputs[slot.input].path;
  if (brought.from == nullptr) {
    return fail("E-PATH", "builtins.RuntimeError",
                fmt::format("{}: input {} is not there in the replay",
                            described(frame, wrapper, calls.replayed), path));
  }
  const bool is_refused = !brought.code.empty();
  log_->slot_fill(fmt::format("x{}", slot.number), shown_call(frame, wrapper, calls.replayed),
                  calls.entry, path, shown(brought.tensor, true), is_refused);
  if (is_refused) {
    return fail(brought.code, "builtins.RuntimeError",
                fmt::format("slot x{} of {}, input {}: {}", slot.number,
                            described(frame, *slot.wrapper, slot.call), path, brought.why));
  }
  put_in_slot(slot, std::move(brought.tensor));
  return Flow::done;
}

Flow Rank::serve_outputs(Walk& walk, const WrapperBegin& wrapper, WrapperEntry& entry,
                         std::int64_t call) {
  CheckpointFrame& frame = *frames_[walk.frame];
  if (entry.n_leaves != wrapper.outputs.size()) {
    return fail(
        "E-USER", "builtins.ValueError",
        fmt::format("{} is served {} tensors, where its code takes {}",
                    described(frame, wrapper, call), entry.n_leaves, wrapper.outputs.size()));
  }
  if (!keeps_outputs(wrapper) && !wrapper.outputs.empty()) {
    Tensor stands_in = leaf(*program_->placeholder, OwnerClass::input);
    stands_in.id = log_->book().tensor++;  // one storage for all, and an identity for each call
    log_->placeholder(shown_call(frame, wrapper, call), std::ssize(wrapper.outputs),
                      shown(stands_in));
    frame.unkept[stands_in.id] = {&wrapper, call, 0};
    if (has(RankFault::placeholders_kept)) {
      planted_.leaked_placeholders.emplace_back(
          ledger_, ledger_.allocate(0, BufferRole::none, "placeholder"), OwnerClass::input);
    }
    for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf) {
      const ValueId output = value_after(wrapper, leaf);
      walk.variables.set(output, {stands_in.shared_as(walk.owner), {}, 0, output});
    }
    return Flow::done;
  }
  for (std::size_t leaf = 0; leaf < entry.outputs.size(); ++leaf) {
    const Tensor& kept = entry.outputs[leaf];
    if (is_offloaded(kept)) return refuse_offloaded(kept, described(frame, wrapper, entry.call));
    const std::uint32_t now = ledger_.version(kept.hold.storage());
    if (now != entry.versions[leaf] && protocol_->checks_version_of(KeptThing::served)) {
      return fail("E-MUTATED", "builtins.RuntimeError",
                  fmt::format("output {} that {} kept was mutated (version {} to {})", leaf,
                              described(frame, wrapper, entry.call), entry.versions[leaf], now));
    }
    const ValueId output = value_after(wrapper, leaf);
    if (!wrapper.is_recorded) {
      set_requires_grad(walk, output,
                        entry.requires_grad[leaf] && !has(RankFault::served_without_grad));
    }
    walk.variables.set(output, {kept.shared_as(walk.owner), history_of(walk, output), 0, output});
  }
  return Flow::done;
}

std::size_t Rank::body_of(const Walk& walk, const WrapperBegin& wrapper) const {
  const std::vector<Statement>& statements = program_->forwards[walk.forward].statements;
  return std::get<WrapperEnd>(statements[wrapper.end]).begin + 1;
}

/// What the skipped body would have written in place, and made before it, goes on as it is: a
/// recording's program has another name for it from the write on.
void Rank::leave_unwritten(Walk& walk, const WrapperBegin& wrapper) {
  const std::vector<Statement>& statements = program_->forwards[walk.forward].statements;
  for (std::size_t at = body_of(walk, wrapper); at < wrapper.end; ++at) {
    const auto* op = std::get_if<OpStatement>(&statements[at]);
    if (op == nullptr || !op->writes) continue;
    for (const ValueId written : op->outputs) {
      if (find(walk, written) != nullptr) continue;
      std::optional<ValueId> before;
      walk.variables.each([&](const Variable& variable) {
        const ProgramValue& value = value_of(variable.name);
        const bool is_it = value.buffer == value_of(written).buffer &&
                           value.layout == value_of(written).layout && variable.name < written;
        if (is_it && (!before || *before < variable.name)) before = variable.name;
      });
      if (before) bind(walk, *before, written);
    }
  }
}

Flow Rank::repeat_boundaries(Walk& walk, const WrapperBegin& wrapper, const WrapperEntry& entry,
                             std::int64_t call, std::int64_t& n_boundaries) {
  const CheckpointFrame& frame = *frames_[walk.frame];
  if (!exclusion_rules_.repeats_boundaries) return Flow::done;
  const bool stands_in = !keeps_outputs(wrapper);
  for (std::size_t leaf = 0; leaf < entry.has_boundary.size(); ++leaf) {
    if (!entry.has_boundary[leaf]) continue;
    if (has(RankFault::trigger_without_node) && stands_in) continue;
    if (has(RankFault::one_placeholder) && stands_in && leaf > 0) continue;
    ++n_boundaries;
    log_->boundary(shown_call(frame, wrapper, call), static_cast<std::int64_t>(leaf), true,
                   tensor_of(walk, value_after(wrapper, leaf), walk.owner).id);
    SavedSlot slot;
    const Flow flow = pack(walk, trigger(), slot);
    release(slot);
    if (!wrapper.is_recorded) set_requires_grad(walk, value_after(wrapper, leaf), true);
    if (flow != Flow::done) return flow;
  }
  return Flow::done;
}

/// A replay is over, whatever ended it, or forward raised: no later replay finds an entry.
Flow Rank::end_entries(CheckpointFrame& frame, Flow flow) {
  if (frame.wrappers.empty()) return flow;
  std::int64_t n_left = 0;
  std::string left;
  const WrapperCalls* unused = nullptr;
  std::string_view unused_name;
  for (auto& [name, calls] : frame.wrappers) {
    if (calls.entries.empty()) continue;
    n_left += std::ssize(calls.entries);
    left += fmt::format("{}\"{}\":{}", left.empty() ? "" : ",", name, calls.entries.size());
    unused = &calls;
    unused_name = name;
  }
  if (flow == Flow::done && unused != nullptr && exclusion_rules_.demands_all_entries) {
    flow = fail("E-CACHE-LEFT", "builtins.RuntimeError",
                fmt::format("wrapper {}#{} in {}: {} forward entries not consumed by the replay",
                            unused_name, unused->entries.front().call, described(frame),
                            unused->entries.size()));
  }
  for (auto& [name, calls] : frame.wrappers) {
    if (has(RankFault::entries_outlive_frames)) {
      std::move(calls.entries.begin(), calls.entries.end(),
                std::back_inserter(planted_.leaked_entries));
    }
    calls.entries.clear();
    calls.n_in_replay = 0;
  }
  log_->cache_clear(frame.number, n_left, "{" + left + "}");
  return flow;
}

/// An entry that holds on to its outputs' nodes keeps its own frame alive: at the end of a run such
/// circles are cut.
void Rank::drop_entries() {
  planted_.leaked_entries.clear();
  for (const std::unique_ptr<CheckpointFrame>& frame : frames_) {
    if (frame == nullptr) continue;
    const auto wrappers = std::exchange(frame->wrappers, {});
  }
}

Flow Rank::unpack_input(SavedSlot& slot, const ReplayKey& key, Tensor& tensor) {
  CheckpointFrame& frame = *frames_[slot.frame];
  InputSlot& input = frame.input_slots[slot.index];
  const std::string name = log_->is_on() ? slot_name(slot) : std::string();
  ++counts_.hook_calls;
  const bool is_of_remat = remat_rules_.handles_regions;
  const auto asked = is_of_remat ? std::optional(key_for(frame, key)) : std::nullopt;
  const auto shown_frame = is_of_remat ? std::nullopt : std::optional(frame.number);
  log_->unpack_begin(name, shown_frame, asked);
  const auto refuse = [&](std::string_view code, const std::string& what) {
    log_->unpack_error(name, shown_frame, asked, code, "builtins.RuntimeError");
    return fail(code, "builtins.RuntimeError",
                fmt::format("slot {} of {}, input {}: {}", slot_name(slot),
                            is_of_remat ? described(frame, *input.wrapper)
                                        : described(frame, *input.wrapper, input.call),
                            input.wrapper->inputs[input.input].path, what));
  };
  if (!input.filled && is_of_remat && input.was_filled)
    return refuse("E-TWICE", "it was handed out already, and no replay has filled it since");
  if (!input.filled) {
    const ReplaySession& session = session_of(frame, key);
    return refuse("E-SLOT-EMPTY",
                  session.n_packed == 0
                      ? std::string("the replay has not reached the wrapper: it was not started")
                      : fmt::format("the replay has not reached the wrapper: it ended after {} of "
                                    "{} outer saves",
                                    session.n_packed, frame.holders.size()));
  }
  const std::uint32_t now = ledger_.version(input.tensor.hold.storage());
  if (now != input.fill_version && protocol_->checks_version_of(KeptThing::rederived)) {
    return refuse("E-SLOT-STALE", fmt::format("it was overwritten after the replay filled it "
                                              "(version {} to {})",
                                              input.fill_version, now));
  }
  const bool is_the_last = is_of_remat && remat_rules_.hands_out_once;
  input.filled = !is_the_last;
  tensor = is_the_last ? std::move(input.tensor) : input.tensor.shared_as(OwnerClass::slot);
  log_->unpack(name, shown_frame, asked, "rederived", shown(tensor, true));
  return Flow::done;
}

}  // namespace remat
