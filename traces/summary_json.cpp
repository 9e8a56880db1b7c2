#include "traces/summary_json.hpp"

#include <string>

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json counts_json(const Counts& counts) {
  Json object = Json::object();
  for (const auto& [name, n] : counts)
    object[name] = n;
  return object;
}

template <typename Value, typename Show>
Json by_phase(const std::map<Phase, Value>& values, Show show) {
  Json object = Json::object();
  for (const auto& [phase, value] : values)
    object[std::string(name_of(phase))] = show(value);
  return object;
}

template <typename Rows, typename Show>
Json list_json(const Rows& rows, Show show) {
  Json list = Json::array();
  for (const auto& row : rows)
    list.push_back(show(row));
  return list;
}

Json replay_json(const ReplayBegin& replay) {
  return {{"seq", replay.seq},
          {"unit", replay.unit},
          {"inv", or_null(replay.inv)},
          {"microbatch", or_null(replay.microbatch)},
          {"frame", or_null(replay.frame)},
          {"gid_kind", or_null(replay.session_kind)},
          {"graph_task", or_null(replay.graph_task)},
          {"node", or_null(replay.node)},
          {"nested_in", replay.nested_in.empty() ? Json() : Json::parse(replay.nested_in)}};
}

Json early_stop_json(const EarlyStop& stop) {
  return {{"seq", stop.seq},          {"unit", stop.unit},
          {"inv", or_null(stop.inv)}, {"after_packs", or_null(stop.after_packs)},
          {"of", or_null(stop.of)},   {"after_ops", or_null(stop.after_ops)}};
}

Json error_json(const WatchedError& error) {
  return {{"seq", error.seq}, {"type", or_null(error.type)}, {"label", error.label}};
}

Json resident_json(const ResidentBytes& resident) {
  return {{"microbatch", or_null(resident.microbatch)}, {"bytes", resident.bytes}};
}

Json unit_json(const UnitSummary& unit) {
  return {{"unit", unit.unit},
          {"microbatch", or_null(unit.microbatch)},
          {"ops_forward", unit.ops_forward},
          {"ops_replay", unit.ops_replay},
          {"packs", unit.packs},
          {"unpacks", unit.unpacks},
          {"replays", unit.replays}};
}

void add_bytes(Json& object, const TraceSummary& summary) {
  const auto known = [&](std::int64_t bytes) {
    return summary.bytes_recorded ? Json(bytes) : Json(nullptr);
  };
  const auto all = [](ByteCount bytes) { return Json(bytes.all); };
  const auto rest = [](ByteCount bytes) { return Json(bytes.without_gradients); };
  object["resident_bytes"] = list_json(summary.resident, resident_json);
  object["peak_bytes"] = known(summary.peak.all);
  object["peak_bytes_by_phase"] = by_phase(summary.peak_by_phase, all);
  object["peak_bytes_excluding_gradients"] = known(summary.peak.without_gradients);
  object["peak_bytes_excluding_gradients_by_phase"] = by_phase(summary.peak_by_phase, rest);
  object["live_bytes_at_end"] = known(summary.live_at_end);
}

}  // namespace

nlohmann::ordered_json to_json(const TraceSummary& summary) {
  Json object = Json::object();
  object["events"] = summary.events;
  object["steps"] = summary.steps;
  object["ops"] = by_phase(summary.ops, counts_json);
  object["hook_ops"] = by_phase(summary.hook_ops, counts_json);
  object["detach_ops"] = by_phase(summary.detaches, [](std::int64_t n) { return Json(n); });
  object["packs_by_unit"] = counts_json(summary.packs_by_unit);
  object["packs_by_held"] = counts_json(summary.packs_by_held);
  object["unpacks"] = counts_json(summary.unpacks);
  object["replays"] = counts_json(summary.replays);
  object["replay_order"] = list_json(summary.replay_order, replay_json);
  object["early_stops"] = list_json(summary.early_stops, early_stop_json);
  object["errors"] = list_json(summary.errors, error_json);
  object["sac_saved"] = summary.sac_saved;
  object["sac_hits"] = summary.sac_hits;
  add_bytes(object, summary);
  object["units"] = list_json(summary.units, unit_json);
  return object;
}

std::string summary_json(const TraceSummary& summary) {
  return to_json(summary).dump();
}

}  // namespace remat
