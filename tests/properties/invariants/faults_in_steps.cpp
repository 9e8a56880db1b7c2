#include <algorithm>
#include <map>

#include "tests/properties/invariants/planted_faults.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;
using Result = std::optional<Planted>;

/// A place in the step, its end included.
std::size_t place_in_the_step(const Recording& of, Choices& choices) {
  return choices.between(of.step_begin + 1, *of.step_end);
}

/// Puts the events into the step, in this order; their names.
std::vector<std::size_t> spread(const Recording& of, ChangedTrace& trace, Choices& choices,
                                const std::vector<Json>& events) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < events.size(); ++i)
    places.push_back(place_in_the_step(of, choices));
  std::sort(places.begin(), places.end());
  std::vector<std::size_t> names;
  for (std::size_t i = 0; i < events.size(); ++i)
    names.push_back(trace.insert_before(places[i], events[i]));
  return names;
}

Result scope_left_open(const Recording& of, ChangedTrace& trace, Choices& choices) {
  spread(of, trace, choices,
         {{{"kind", "scope_enter"}, {"scope", "outer"}},
          {{"kind", "scope_enter"}, {"scope", "hook"}},
          {{"kind", "scope_exit"}, {"scope", "outer"}}});
  return Planted{"no_leak_at_step_end", *of.step_end};
}

Result scope_left_twice(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto names = spread(of, trace, choices,
                            {{{"kind", "scope_enter"}, {"scope", "hook"}},
                             {{"kind", "scope_exit"}, {"scope", "hook"}},
                             {{"kind", "scope_exit"}, {"scope", "hook"}}});
  return Planted{"no_leak_at_step_end", names[2]};
}

Result field_put_over_unread(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto names = spread(of, trace, choices,
                            {{{"kind", "field_put"}, {"field", "q"}, {"key", "mb0"}},
                             {{"kind", "field_put"}, {"field", "q"}, {"key", "mb1"}},
                             {{"kind", "field_get"}, {"field", "q"}, {"key", "mb0"}}});
  return Planted{"slot_used_once", names[1]};
}

/// The model's own ops of the step that lie outside of every region, by name.
std::map<std::string, std::vector<std::size_t>> ops_by_name(const Recording& of) {
  std::map<std::string, std::vector<std::size_t>> ops;
  for (std::size_t at = 0; at < *of.step_end; ++at) {
    if (of.text(at, "kind") == "op" && of.text(at, "internal").empty())
      ops[of.text(at, "name")].push_back(at);
  }
  return ops;
}

Result op_count(const Recording& of, ChangedTrace& trace, Choices& choices, int off_by,
                std::optional<std::size_t>& last) {
  const auto ops = ops_by_name(of);
  auto chosen = ops.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(choices.below(ops.size())));
  const auto n = static_cast<std::int64_t>(chosen->second.size());
  trace[0]["expect"]["op_counts"][chosen->first] = n + off_by;
  last = chosen->second.back();
  return Planted{"op_counts", off_by < 0 ? last : of.step_end};
}

Result op_once_too_often(const Recording& of, ChangedTrace& trace, Choices& choices) {
  std::optional<std::size_t> last;
  return op_count(of, trace, choices, -1, last);
}

Result op_once_too_rarely(const Recording& of, ChangedTrace& trace, Choices& choices) {
  std::optional<std::size_t> last;
  return op_count(of, trace, choices, 1, last);
}

/// A replay whose forward is in the recording, outside of every other replay.
const RecordedReplay* replay_with_forward(const Recording& of, Choices& choices) {
  std::vector<const RecordedReplay*> known;
  for (const RecordedReplay& replay : of.replays) {
    if (replay.frame && of.forwards.count(*replay.frame) > 0 &&
        !of.in_a_replay(of.forwards.at(*replay.frame).first))
      known.push_back(&replay);
  }
  return known.empty() ? nullptr : choices.one_of(known);
}

Result effect_repeated(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr) return std::nullopt;
  const auto [begin, end] = of.forwards.at(*replay->frame);
  const Json effect = {{"kind", "side_effect"}, {"name", "log"}};
  trace.insert_before(choices.between(begin + 1, end), effect);
  const std::size_t again = trace.insert_after(replay->begin, effect);
  return Planted{"op_counts", again};
}

Result write_repeated(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr) return std::nullopt;
  trace.insert_before(1, {{"kind", "storage_alloc"}, {"storage", of.unused_id}, {"bytes", 4}});
  trace.insert_before(1, {{"kind", "role"}, {"storage", of.unused_id}, {"role", "buffer"}});
  const Json write = {{"kind", "mutate"}, {"storage", of.unused_id}, {"tensor", 0}};
  const auto [begin, end] = of.forwards.at(*replay->frame);
  trace.insert_before(choices.between(begin + 1, end), write);
  return Planted{"op_counts", trace.insert_after(replay->begin, write)};
}

std::vector<Json> contributions(std::initializer_list<const char*> values) {
  std::vector<Json> events;
  for (const char* value : values)
    events.push_back({{"kind", "grad"}, {"param", "w"}, {"value", value}});
  return events;
}

Result gradients(const Recording& of, ChangedTrace& trace, Choices& choices,
                 std::initializer_list<const char*> values) {
  trace[0]["expect"]["gradients"]["w"] = {"g1", "g2"};
  spread(of, trace, choices, contributions(values));
  return Planted{"gradients_equal_plain", *of.step_end};
}

Result gradient_missing(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return gradients(of, trace, choices, {"g2"});
}
Result gradient_twice(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return gradients(of, trace, choices, {"g2", "g1", "g2"});
}
Result gradient_of_another_value(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return gradients(of, trace, choices, {"g2", "g3"});
}

Json draw() {
  return {{"kind", "rng"}, {"generator", "cpu"}};
}
Json put_to(int position) {
  return {{"kind", "rng_set"}, {"generator", "cpu"}, {"to", position}};
}

Result draws_from_another_place(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr) return std::nullopt;
  const std::size_t forward = of.forwards.at(*replay->frame).first;
  trace.insert_after(forward, draw());
  trace.insert_after(forward, put_to(5));
  const std::size_t planted = trace.insert_after(replay->begin, draw());
  trace.insert_after(replay->begin, put_to(static_cast<int>(choices.between(6, 9))));
  return Planted{"rng_position", planted};
}

Result generator_is_not_put_back(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr) return std::nullopt;
  std::size_t later = replay->closed + 1;
  while (of.in_a_replay(later))
    ++later;
  const std::size_t forward = of.forwards.at(*replay->frame).first;
  const std::size_t planted = trace.insert_before(later, draw());
  trace.insert_after(forward, draw());
  trace.insert_after(forward, put_to(5));
  trace.insert_before(of.forwards.at(*replay->frame).second + 1, draw());
  trace.insert_after(replay->begin, draw());
  trace.insert_after(replay->begin, put_to(5));
  return Planted{"rng_position", planted};
}

Result random_state_changed_by_replay(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr) return std::nullopt;
  trace[replay->closed]["rng_crc"] = 1;
  return Planted{"rng_position", replay->closed};
}

Result random_state_of_body_differs(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const RecordedReplay* replay = replay_with_forward(of, choices);
  if (replay == nullptr || of.text(replay->begin + 1, "kind") != "body_begin") return std::nullopt;
  trace[of.forwards.at(*replay->frame).second]["rng_crc"] = 2;  // forward draws
  trace[replay->begin + 1]["rng_crc"] = 1;
  return Planted{"rng_position", replay->begin + 1};
}

/// Three ranks issue four collectives; `spoil` may change those of rank 1.
template <typename Spoil>
std::vector<std::size_t> collectives(const Recording& of, ChangedTrace& trace, Choices& choices,
                                     Spoil spoil) {
  std::vector<Json> events;
  std::vector<Json> of_rank_1;
  for (int i = 0; i < 4; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      const Json call = {
          {"kind", "collective"},     {"group", "dp"}, {"rank", rank}, {"name", "all_gather"},
          {"tag", std::to_string(i)}, {"n", 8}};
      (rank == 1 ? of_rank_1 : events).push_back(call);
    }
  }
  spoil(of_rank_1);
  events.insert(events.end(), of_rank_1.begin(), of_rank_1.end());
  const std::size_t n_others = events.size() - of_rank_1.size();
  const auto names = spread(of, trace, choices, events);
  return {names.begin() + static_cast<std::ptrdiff_t>(n_others), names.end()};
}

Result collectives_swapped(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const std::size_t at = choices.below(3);
  const auto names = collectives(
      of, trace, choices, [at](std::vector<Json>& calls) { std::swap(calls[at], calls[at + 1]); });
  return Planted{"collective_order", names[at]};
}

Result collective_of_another_size(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const std::size_t at = choices.below(4);
  const auto names =
      collectives(of, trace, choices, [at](std::vector<Json>& calls) { calls[at]["n"] = 9; });
  return Planted{"collective_order", names[at]};
}

Result last_collective_missing(const Recording& of, ChangedTrace& trace, Choices& choices) {
  collectives(of, trace, choices, [](std::vector<Json>& calls) { calls.pop_back(); });
  return Planted{"no_deadlock", *of.step_end};
}

Result groups_in_a_circle(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto call = [](int rank, const char* group) {
    return Json{{"kind", "collective"}, {"rank", rank}, {"group", group}, {"name", "all_reduce"}};
  };
  spread(of, trace, choices,
         {call(0, "a"), call(1, "b"), call(2, "c"), call(0, "b"), call(1, "c"), call(2, "a")});
  return Planted{"no_deadlock", *of.step_end};
}

Result message_never_sent(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto message = [](const char* kind, int rank, int peer, const char* tag) {
    return Json{{"kind", kind}, {"rank", rank}, {"peer", peer}, {"tag", tag}};
  };
  spread(of, trace, choices,
         {message("send", 0, 1, "x"), message("recv", 1, 0, "x"), message("recv", 1, 0, "y")});
  return Planted{"no_deadlock", *of.step_end};
}

Result streams_not_ordered(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto launch = [&of](const char* stream, const char* access) {
    return Json{{"kind", "launch"}, {"stream", stream}, {access, Json::array({of.unused_id})}};
  };
  std::vector<Json> events = {launch("copy", "writes"),
                              {{"kind", "record"}, {"stream", "copy"}, {"event", "e"}},
                              {{"kind", "wait"}, {"stream", "compute"}, {"event", "e"}},
                              launch("compute", "reads")};
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(choices.between(1, 2)));
  return Planted{"stream_order", spread(of, trace, choices, events).back()};
}

}  // namespace

std::vector<FaultKind> faults_in_steps() {
  return {{"scope_left_open", scope_left_open},
          {"scope_left_twice", scope_left_twice},
          {"field_put_over_unread", field_put_over_unread},
          {"op_once_too_often", op_once_too_often},
          {"op_once_too_rarely", op_once_too_rarely},
          {"effect_repeated", effect_repeated},
          {"write_repeated", write_repeated},
          {"gradient_missing", gradient_missing},
          {"gradient_twice", gradient_twice},
          {"gradient_of_another_value", gradient_of_another_value},
          {"draws_from_another_place", draws_from_another_place},
          {"generator_is_not_put_back", generator_is_not_put_back},
          {"random_state_changed_by_replay", random_state_changed_by_replay},
          {"random_state_of_body_differs", random_state_of_body_differs},
          {"collectives_swapped", collectives_swapped},
          {"collective_of_another_size", collective_of_another_size},
          {"last_collective_missing", last_collective_missing},
          {"groups_in_a_circle", groups_in_a_circle},
          {"message_never_sent", message_never_sent},
          {"streams_not_ordered", streams_not_ordered}};
}

}  // namespace remat
