#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/rank.hpp"

// Slots asked for, and the replays that this starts.

namespace remat {

Flow Rank::unpack(SavedSlot& slot, const ReplayKey& key, const CallSite& saved_by, Tensor& tensor) {
  if (slot.where == SavedSlot::Where::input_slot) return unpack_input(slot, key, tensor);
  return slot.where == SavedSlot::Where::holder ? unpack_holder(slot, key, tensor)
                                                : unpack_kept(slot, saved_by, tensor);
}

Flow Rank::unpack_kept(SavedSlot& slot, const CallSite& saved_by, Tensor& tensor) {
  const bool is_shown = slot.number >= 0;
  const std::string name = is_shown && log_->is_on() ? slot_name(slot) : std::string();
  if (is_shown) {
    ++counts_.hook_calls;
    log_->unpack_begin(name, std::nullopt, std::nullopt);
  }
  if (is_offloaded(slot.kept)) {
    if (is_shown)
      log_->unpack_error(name, std::nullopt, std::nullopt, "E-SWAP-STATE", "builtins.RuntimeError");
    return refuse_offloaded(slot.kept, "the backward of " + described(saved_by));
  }
  const KeptThing thing = slot.is_excluded       ? KeptThing::excluded
                          : slot.is_region_input ? KeptThing::region_input
                                                 : KeptThing::saved_tensor;
  const std::uint32_t now = ledger_.version(slot.kept.hold.storage());
  if (now != slot.version && protocol_->checks_version_of(thing)) {
    if (is_shown)
      log_->unpack_error(name, std::nullopt, std::nullopt, "E-MUTATED", "builtins.RuntimeError");
    return fail(
        "E-MUTATED", "builtins.RuntimeError",
        fmt::format("'{}', saved for backward by {}, has been modified by an inplace "
                    "operation: it is at version {}, saved at {}",
                    value_of(slot.kept.value).name, described(saved_by), now, slot.version));
  }
  tensor = slot.kept.shared_as(OwnerClass::outer_saved);
  if (is_shown) log_->unpack(name, std::nullopt, std::nullopt, "saved", shown(tensor, true));
  return Flow::done;
}

Flow Rank::unpack_holder(SavedSlot& slot, const ReplayKey& asked_by, Tensor& tensor) {
  CheckpointFrame& frame = *frames_[slot.frame];
  const ReplayKey key = key_for(frame, asked_by);
  const std::string name = log_->is_on() ? slot_name(slot) : std::string();
  log_->unpack_begin(name, frame.number, key);
  ++counts_.hook_calls;
  const auto refuse = [&](std::string_view code, std::string what) {
    log_->unpack_error(name, frame.number, key, code, checkpoint_error(frame));
    return fail(code, checkpoint_error(frame),
                fmt::format("slot {} of {}: {}", slot_name(slot), described(frame), what));
  };
  for (;;) {
    const ReplaySession& session = session_of(frame, key);
    const Refilled* filled =
        slot.index < session.slots.size() ? &session.slots[slot.index] : nullptr;
    const SlotState state{.replayed = session.replayed,
                          .filled = filled != nullptr && filled->filled,
                          .handed_out = filled != nullptr && filled->handed_out};
    switch (protocol_->unpack(state)) {
      case UnpackDecision::replay:
        if (const Flow flow = replay(slot.frame, key, asked_by); flow != Flow::done) return flow;
        continue;
      case UnpackDecision::twice:
        return refuse("E-TWICE", "already unpacked once in this session");
      case UnpackDecision::never_filled:
        return refuse("E-SLOT-EMPTY", "the replay did not reach it");
      case UnpackDecision::hand_out:
        break;
    }
    break;
  }
  Refilled& filled = session_of(frame, key).slots[slot.index];
  const std::uint32_t now = ledger_.version(filled.tensor.hold.storage());
  if (now != filled.version && protocol_->checks_version_of(KeptThing::refilled)) {
    return refuse("E-SLOT-STALE", fmt::format("it was overwritten after the replay filled it "
                                              "(version {} to {})",
                                              filled.version, now));
  }
  const bool retained = is_retained(key);
  filled.handed_out |= !retained;
  tensor = frame_rules_.releases_when_read && !retained
               ? std::move(filled.tensor)
               : filled.tensor.shared_as(OwnerClass::recomputed);
  log_->unpack(name, frame.number, key, "recomputed", shown(tensor, true));
  return Flow::done;
}

Flow Rank::replay(std::uint32_t index, const ReplayKey& key, const ReplayKey& asked_by) {
  frames_[index]->is_replaying = true;
  const Flow flow = replay_alive(index, key, asked_by);
  frames_[index]->is_replaying = false;
  if (frames_[index]->is_over()) free_frame(index);
  return flow;
}

Flow Rank::replay_alive(std::uint32_t index, const ReplayKey& key, const ReplayKey& asked_by) {
  CheckpointFrame& frame = *frames_[index];
  std::vector<Tensor> inputs;
  log_->inputs_unpack_begin(frame.number);
  if (const Flow flow = fetch_inputs(frame, asked_by, inputs); flow != Flow::done) return flow;
  const Flow flow = run_replay_body(index, key, std::move(inputs));
  if (flow == Flow::failed) return flow;
  ReplaySession& session = session_of(frame, key);
  session.replayed = true;
  return judge_replay(frame, session);
}

ReplaySession& Rank::session_of(CheckpointFrame& frame, const ReplayKey& key) const {
  return frame.session(frame_rules_.replays_each_session ? key : ReplayKey{});
}

/// What a replay's packs are held against.
std::int64_t Rank::forward_packs(const CheckpointFrame& frame) const {
  return frame_rules_.counts_dead_holders ? std::ssize(frame.holders) : frame.n_alive;
}

Flow Rank::fetch_inputs(CheckpointFrame& frame, const ReplayKey& key, std::vector<Tensor>& inputs) {
  const RegionBegin& region = region_of(frame.forward, frame.begin);
  if (const Flow flow = check_captured(frame, region); flow != Flow::done) return flow;
  std::vector<std::int64_t> ids;
  for (SavedSlot& slot : frame.inputs) {
    Tensor tensor;
    if (const Flow flow = unpack(slot, key, site_of(frame), tensor); flow != Flow::done)
      return flow;
    const std::int64_t from = std::exchange(tensor.id, log_->book().tensor++);
    keep_shape(region.inputs[inputs.size()], from, tensor);
    log_->hook_detach("get_inputs", from, shown(tensor));
    ids.push_back(tensor.id);
    inputs.push_back(std::move(tensor));
  }
  log_->inputs_unpack(frame.number, ids);
  return Flow::done;
}

/// Strict: what the body reads past its arguments has not been written either.
Flow Rank::check_captured(const CheckpointFrame& frame, const RegionBegin& region) {
  if (!protocol_->checks_version_of(KeptThing::captured)) return Flow::done;
  const auto written = [&](ValueId value) {
    return fail("E-MUTATED", "builtins.RuntimeError",
                fmt::format("{}: '{}' was written between its forward and its replay",
                            described(frame), value_of(value).name));
  };
  for (std::size_t i = 0; i < frame.captured.size(); ++i) {
    if (ledger_.version(frame.captured[i].hold.storage()) != frame.captured_versions[i])
      return written(region.captured[i]);
  }
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    const RegionBegin::Param& param = region.params[i];
    if (param.in_excluded && exclusion_rules_.excludes) continue;
    const Tensor tensor = leaf(param.value, OwnerClass::param);
    if (ledger_.version(tensor.hold.storage()) != frame.param_versions[i])
      return written(param.value);
  }
  return Flow::done;
}

Flow Rank::run_replay_body(std::uint32_t index, const ReplayKey& key, std::vector<Tensor> inputs) {
  CheckpointFrame& frame = *frames_[index];
  const RegionBegin& region = region_of(frame.forward, frame.begin);
  Walk walk;
  walk.forward = frame.forward;
  walk.packs = Packs::refills;
  walk.frame = index;
  walk.key = key;
  walk.is_replay = true;
  walk.cache_of = index;
  walk.serves = true;
  walk.owner = OwnerClass::replay_tmp;
  walk.flipped = frame.flipped;
  walk.is_compiled = frame.is_compiled;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    walk.variables.set(region.inputs[i], {{inputs[i].hold.shared_as(OwnerClass::replay_tmp),
                                           region.inputs[i], inputs[i].id},
                                          history_of(walk, region.inputs[i]),
                                          0});
  }
  inputs.clear();
  for (const Tensor& captured : frame.captured) {
    walk.variables.set(captured.value, {captured.shared_as(OwnerClass::replay_tmp),
                                        history_of(walk, captured.value), 0});
  }

  return run_bracketed(walk, {.forward = frame.forward,
                              .begin = frame.begin,
                              .invocation = frame.invocation,
                              .frame = frame.number,
                              .key = key,
                              .rng_position = frame.rng_position});
}

/// Runs a region's statements as a replay: its unit, its phase, its random state, its peak.
Flow Rank::run_bracketed(Walk& walk, const ReplayBracket& bracket) {
  const RegionBegin& region = region_of(bracket.forward, bracket.begin);
  const bool is_reentrant = !bracket.frame;
  const Phase phase = log_->phase();
  const std::int64_t rng = counts_.rng_position;
  const std::int64_t before = ledger_.live().total;
  log_->push_unit(region.name, bracket.invocation);
  log_->set_phase(Phase::replay);
  log_->unit_begin(bracket.frame, true, true, is_reentrant, bracket.key);
  ledger_.begin_peak();
  const bool restores = region.preserves_rng && options_.preserves_rng &&
                        frame_rules_.sets_generator && !has(RankFault::generator_not_set);
  const auto set_generator = [&](std::int64_t position) {
    if (!restores || counts_.rng_position == position) return;
    counts_.rng_position = position;
    log_->rng_set(position);
  };
  set_generator(bracket.rng_position);
  if (bracket.frame) log_->body_begin(*bracket.frame, true);
  if (bracket.frame) frames_[walk.frame]->saves.names.clear();
  Flow flow = run(walk, bracket.begin + 1, region.end);
  if (flow == Flow::done && bracket.frame) flow = repeat_triggers(walk, *frames_[walk.frame]);
  if (walk.packs == Packs::refills) flow = end_entries(*frames_[walk.frame], flow);
  if (bracket.frame) frames_[walk.frame]->placeholders = {};
  if (bracket.frame) offload_in_replay(*frames_[walk.frame]);
  if (!is_reentrant) walk.variables.clear();  // a reentrant one has its backward to come
  set_generator(rng);
  const std::string_view ended = flow == Flow::done      ? "return"
                                 : flow == Flow::stopped ? "_StopRecomputationError"
                                                         : std::string_view(error_->type);
  log_->unit_end(bracket.frame, true, true, is_reentrant, ended);
  log_->set_phase(phase);
  log_->pop_unit();
  counts_.replay_peak = std::max(counts_.replay_peak, ledger_.recent_peak() - before);
  return flow;
}

Flow Rank::judge_replay(CheckpointFrame& frame, const ReplaySession& session) {
  const ReplayEnd end{.n_forward = forward_packs(frame),
                      .n_replay = session.n_packed,
                      .metadata_equal = session.metadata_equal,
                      .surplus_passed = session.surplus_passed};
  const ReplayFault fault = protocol_->replay_ended(end);
  log_->determinism_check(frame.number, fault == ReplayFault::none, end.n_forward, end.n_replay);
  const std::string name = fault == ReplayFault::none ? std::string() : described(frame);
  switch (fault) {
    case ReplayFault::none:
      return Flow::done;
    case ReplayFault::count:
      return fail("E-COUNT", checkpoint_error(frame),
                  fmt::format("{}: forward saved {} tensors, the replay {}", name, end.n_forward,
                              end.n_replay));
    case ReplayFault::metadata:
      return fail("E-META", checkpoint_error(frame),
                  fmt::format("{}: the replay saved other tensors than forward", name));
  }
  return Flow::done;
}

}  // namespace remat
