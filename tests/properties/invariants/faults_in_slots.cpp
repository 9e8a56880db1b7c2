#include <algorithm>
#include <set>

#include "tests/properties/invariants/planted_faults.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;
using Result = std::optional<Planted>;

template <typename Item, typename Fits>
std::vector<Item> those(const std::vector<Item>& items, Fits fits) {
  std::vector<Item> fitting;
  std::copy_if(items.begin(), items.end(), std::back_inserter(fitting), fits);
  return fitting;
}

bool is_last_of_its_replay(const Recording& of, const FilledRead& slot) {
  return of.replays[slot.replay].fills.back() == slot.fill;
}

Result last_fill_dropped(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    return is_last_of_its_replay(of, slot) && !of.replays[slot.replay].returned;
  });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  trace.drop(slot.fill);
  return Planted{"unpack_follows_replay", slot.read};
}

Result last_fill_of_a_returning_replay_dropped(const Recording& of, ChangedTrace& trace,
                                               Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    return is_last_of_its_replay(of, slot) && of.replays[slot.replay].returned;
  });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  trace.drop(slot.fill);
  return Planted{"saved_lists_match", of.replays[slot.replay].closed, {"unpack_follows_replay"}};
}

/// Calls of other regions begin in it: without it, nobody would know their frames.
bool makes_frames(const Recording& of, const RecordedReplay& replay) {
  for (std::size_t at = replay.begin; at < replay.closed; ++at)
    if (of.text(at, "kind") == "frame_create") return true;
  return false;
}

Result replay_dropped(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    return !makes_frames(of, of.replays[slot.replay]);
  });
  if (slots.empty()) return std::nullopt;
  const std::size_t number = choices.one_of(slots).replay;
  const RecordedReplay& replay = of.replays[number];
  std::set<Json> unborn;
  for (std::size_t at = replay.begin; at <= replay.closed; ++at) {
    if (of.text(at, "kind") == "storage_alloc") unborn.insert(of.events[at]["storage"]);
    trace.drop(at);
  }
  for (std::size_t at = replay.closed; at < of.events.size(); ++at) {
    if (of.text(at, "kind") == "storage_free" && unborn.count(of.events[at]["storage"]) > 0)
      trace.drop(at);
  }
  const auto reads =
      those(of.filled_reads, [&](const FilledRead& slot) { return slot.replay == number; });
  return Planted{"unpack_follows_replay", reads.front().read};
}

Result read_before_the_replay(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    return slot.asked > of.replays[slot.replay].closed;
  });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  const std::size_t begin = of.replays[slot.replay].begin;
  if (slot.asked != slot.read) trace.move_before(slot.asked, begin);
  trace.move_before(slot.read, begin);
  return Planted{"unpack_follows_replay", slot.read};
}

Result other_session_reads(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  for (const std::size_t event : {slot.asked, slot.read}) {
    trace[event]["gid"] = Json::array({"graph_task", 999999});
    trace[event].erase("graph_task");
  }
  return Planted{"unpack_follows_replay", slot.read};
}

Result fill_goes_to_another_session(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(
      of.filled_reads, [&](const FilledRead& slot) { return !of.replays[slot.replay].returned; });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  trace[slot.fill]["gid"] = Json::array({"graph_task", 999999});
  return Planted{"unpack_follows_replay", slot.read};
}

Result refused_because_unfilled(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    return slot.asked != slot.read && slot.asked > of.replays[slot.replay].closed &&
           is_last_of_its_replay(of, slot) && !of.replays[slot.replay].returned;
  });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  trace.drop(slot.fill);
  trace[slot.read]["kind"] = "unpack_error";
  trace[slot.read].erase("tensor");
  return Planted{"unpack_follows_replay", slot.read};
}

Result asked_for_twice(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  if (slot.asked == slot.read)
    return Planted{"slot_used_once", trace.insert_after(slot.read, of.events[slot.read])};
  const std::size_t again = trace.insert_after(slot.read, of.events[slot.asked]);
  trace.insert_after(again, of.events[slot.read]);
  return Planted{"slot_used_once", again};
}

Result filled_twice(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  const std::size_t again = trace.insert_after(slot.fill, of.events[slot.fill]);
  return Planted{"slot_used_once", again, {"saved_lists_match"}};
}

Result hands_out_another_storage(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  const auto others = those(of.lives, [&](const Life& life) {
    return life.birth < slot.read && life.death > slot.read &&
           trace[slot.read]["tensor"]["s"] != life.storage;
  });
  if (others.empty()) return std::nullopt;
  trace[slot.read]["tensor"]["s"] = choices.one_of(others).storage;
  return Planted{"slot_used_once", slot.read};
}

/// Another dtype, shape, stride or offset.
bool bend(Json& tensor, Choices& choices) {
  switch (choices.below(4)) {
    case 0:
      tensor["dtype"] = tensor["dtype"] == "f16" ? "bf16" : "f16";
      return true;
    case 1:
      tensor["shape"].push_back(1);
      return true;
    case 2:
      if (tensor["stride"].empty()) return false;
      tensor["stride"][0] = tensor["stride"][0].get<std::int64_t>() + 1;
      return true;
    default:
      tensor["off"] = tensor["off"].get<std::int64_t>() + 8;
      return true;
  }
}

Result filled_in_another_layout(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  if (!bend(trace[slot.fill]["tensor"], choices)) return std::nullopt;
  return Planted{"saved_lists_match", slot.fill};
}

Result read_in_another_layout(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  if (!bend(trace[slot.read]["tensor"], choices)) return std::nullopt;
  return Planted{"saved_lists_match", slot.read};
}

Result kept_is_read_in_another_layout(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.kept_slots.empty()) return std::nullopt;
  const Kept& kept = choices.one_of(of.kept_slots);
  if (!bend(trace[kept.looked_at]["tensor"], choices)) return std::nullopt;
  return Planted{"saved_lists_match", kept.looked_at};
}

Result saved_beyond_the_end(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto replays = those(of.replays, [&](const RecordedReplay& replay) {
    return replay.frame && !replay.fills.empty() &&
           of.events[replay.fills.back()]["of"].get<std::size_t>() == replay.fills.size();
  });
  if (replays.empty()) return std::nullopt;
  const RecordedReplay& replay = choices.one_of(replays);
  Json surplus = of.events[replay.fills.back()];
  surplus["idx"] = replay.fills.size();
  return Planted{"saved_lists_match", trace.insert_after(replay.fills.back(), surplus)};
}

/// Ops of replays whose forward is in the recording, which make a storage of their own.
std::vector<std::size_t> ops_that_allocate(const Recording& of) {
  std::vector<std::size_t> ops;
  for (const RecordedReplay& replay : of.replays) {
    if (!replay.frame || of.forwards.count(*replay.frame) == 0) continue;
    for (const std::size_t op : replay.ops) {
      if (const Json& before = of.events[op - 1]; before["kind"] == "storage_alloc")
        if (of.events[op]["outputs"].size() == 1 && before["bytes"] > 0) ops.push_back(op);
    }
  }
  return ops;
}

Result replay_runs_another_op(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto ops = ops_that_allocate(of);
  if (ops.empty()) return std::nullopt;
  const std::size_t op = choices.one_of(ops);
  trace[op]["name"] = "aten.never_in_forward.default";
  return Planted{"saved_lists_match", op};
}

Result replay_runs_one_op_more(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto ops = ops_that_allocate(of);
  if (ops.empty()) return std::nullopt;
  const std::size_t op = choices.one_of(ops);
  Json another = of.events[op];
  another["name"] = "aten.never_in_forward.default";
  another["outputs"][0]["s"] = of.unused_id;
  another["outputs"][0]["t"] = of.unused_id;
  const std::size_t planted = trace.insert_after(op, another);
  trace.insert_after(planted, {{"kind", "storage_free"}, {"storage", of.unused_id}});
  return Planted{"saved_lists_match", planted};
}

Result refilled_value_differs(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.filled_reads.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(of.filled_reads);
  for (std::size_t at = 0; at < of.events.size(); ++at) {
    if (of.text(at, "kind") == "pack" && of.text(at, "slot") == slot.slot)
      trace[at]["tensor"]["value"] = "forward's";
  }
  trace[slot.fill]["tensor"]["value"] = "another";
  return Planted{"gradients_equal_plain", slot.fill};
}

Result slot_read_after_its_holder(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto slots = those(of.filled_reads, [&](const FilledRead& slot) {
    const auto death = of.holder_deaths.find(slot.slot);
    return death != of.holder_deaths.end() && death->second > slot.read;
  });
  if (slots.empty()) return std::nullopt;
  const FilledRead& slot = choices.one_of(slots);
  trace.move_before(of.holder_deaths.at(slot.slot), slot.asked);
  return Planted{"no_use_after_free", slot.asked};
}

}  // namespace

std::vector<FaultKind> faults_in_slots() {
  return {{"last_fill_dropped", last_fill_dropped},
          {"last_fill_of_a_returning_replay_dropped", last_fill_of_a_returning_replay_dropped},
          {"replay_dropped", replay_dropped},
          {"read_before_the_replay", read_before_the_replay},
          {"other_session_reads", other_session_reads},
          {"fill_goes_to_another_session", fill_goes_to_another_session},
          {"refused_because_unfilled", refused_because_unfilled},
          {"asked_for_twice", asked_for_twice},
          {"filled_twice", filled_twice},
          {"hands_out_another_storage", hands_out_another_storage},
          {"filled_in_another_layout", filled_in_another_layout},
          {"read_in_another_layout", read_in_another_layout},
          {"kept_is_read_in_another_layout", kept_is_read_in_another_layout},
          {"saved_beyond_the_end", saved_beyond_the_end},
          {"replay_runs_another_op", replay_runs_another_op},
          {"replay_runs_one_op_more", replay_runs_one_op_more},
          {"refilled_value_differs", refilled_value_differs},
          {"slot_read_after_its_holder", slot_read_after_its_holder}};
}

}  // namespace remat
