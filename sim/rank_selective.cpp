#include <fmt/format.h>

#include <utility>

#include "sim/rank.hpp"

// What a selective policy keeps of a region's ops in forward, and serves to a replay (P10).

namespace remat {
namespace {

template <typename Map>
typename Map::mapped_type& found_or_added(Map& map, std::string_view key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : map[std::string(key)];
}

}  // namespace

std::string_view Rank::queue_of(const OpStatement& op) const {
  return cache_rules_.has_queue_per_op ? std::string_view(op.name) : std::string_view();
}

/// A replay meets an op: is it served from the policy's cache?
Flow Rank::serve(Walk& walk, const OpStatement& op, Tensors& outputs, bool& served) {
  if (!walk.serves) return Flow::done;
  CheckpointFrame& frame = *frames_[*walk.cache_of];
  const auto found = frame.cache.find(queue_of(op));
  std::size_t call = found_or_added(walk.op_calls, queue_of(op))++;
  if (!cache_rules_.restarts_counters && found != frame.cache.end()) call += found->second.size();
  CacheEntry* entry =
      found == frame.cache.end() || call >= found->second.size() ? nullptr : &found->second[call];
  CacheState state{.exists = entry != nullptr};
  if (entry != nullptr) {
    state.kept = entry->kept;
    if (cache_rules_.asks_policy_again)
      state.kept = state.kept && keeps(op, asking_units(walk, op), call + found->second.size());
    if (has(RankFault::units_of_forward))
      state.kept = state.kept && keeps(op, asking_units(walk, op), call);
    state.consumed = entry->consumed;
    for (std::size_t i = 0; i < entry->outputs.size(); ++i) {
      const std::uint32_t storage = entry->outputs[i].hold.storage();
      state.written_since |= ledger_.version(storage) != entry->versions[i];
    }
  }
  // Only a failure is described: this runs once for every asked op of a replay.
  const auto which = [&] {
    return fmt::format("call {} of {} in {}", call, op.name, described(frame));
  };
  switch (protocol_->cached_op(state)) {
    case CacheDecision::run:
      return Flow::done;
    case CacheDecision::no_entry:
      return fail("E-CACHE-MISS", "builtins.RuntimeError",
                  which() + ": encountered during backward but not found in storage");
    case CacheDecision::consumed:
      return fail("E-TWICE", "builtins.RuntimeError",
                  which() + ": trying to backward an extra time through a selective region");
    case CacheDecision::written:
      return fail("E-MUTATED", "builtins.RuntimeError",
                  which() + ": its kept output has been written since");
    case CacheDecision::serve:
      break;
  }
  if (entry->outputs.size() != op.outputs.size()) {
    return fail("E-USER", "builtins.ValueError",
                fmt::format("{} is served {} tensors, where its code takes {}", which(),
                            entry->outputs.size(), op.outputs.size()));
  }
  for (const Tensor& kept : entry->outputs) {
    if (is_offloaded(kept)) return refuse_offloaded(kept, which());
  }
  served = true;
  entry->consumed = true;
  Few<std::int64_t> ids;
  for (Tensor& kept : entry->outputs) {
    ids.push_back(kept.id);
    outputs.push_back(kept.shared_as(walk.owner));
  }
  log_->sac_hit(frame.number, op.name, static_cast<std::int64_t>(call), span_of(ids));
  entry->outputs.clear();
  // The code goes on with the tensor that it has, whatever an op that should have written it gave.
  if (op.writes) outputs[0] = tensor_of(walk, *op.writes, walk.owner);
  note_unwritten(walk, op);
  // The op that was not run would have drawn: later draws are to be forward's.
  if (op.kind->draws && protocol_->restores_generator_after_served()) {
    counts_.rng_position = entry->rng_after;
    log_->rng_set(counts_.rng_position);
  }
  return Flow::done;
}

/// Forward ran an op under a selective policy: what does it keep?
Flow Rank::remember(Walk& walk, const OpStatement& op, const Tensors& outputs) {
  CheckpointFrame& frame = *frames_[*walk.cache_of];
  std::vector<CacheEntry>& calls = found_or_added(frame.cache, queue_of(op));
  const AskingUnits asking = asking_units(walk, op);
  const bool kept = keeps(op, asking, calls.size());
  walk.units.closing.clear();
  CacheEntry& entry = calls.emplace_back();
  entry.kept = kept;
  entry.rng_after = counts_.rng_position;
  Few<std::int64_t> ids;
  for (const Tensor& output : outputs) {
    ids.push_back(output.id);
    if (!kept) continue;
    entry.outputs.push_back(output.shared_as(OwnerClass::sac_cache));
    keep_for_offload(walk, KeptAs::cached, output);
    entry.versions.push_back(ledger_.version(output.hold.storage()));
  }
  log_->sac_decide(frame.number, op.name, static_cast<std::int64_t>(calls.size()) - 1, kept,
                   span_of(ids));
  return note_asked(walk, op, asking, kept);
}

}  // namespace remat
