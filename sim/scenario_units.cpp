#include "sim/scenario_units.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "model/listed.hpp"
#include "model/op_kinds.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario_layers.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;

/// "aten::mm" and "mm" are one op.
std::string bare_name(const std::string& name) {
  const std::size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

void require(const JsonPlace& place, bool is_known, std::string_view protocol,
             std::string_view what) {
  if (is_known) return;
  place.fail("protocol " + std::string(protocol) + " has no use for " + std::string(what) +
             "; expected another protocol: kept-ops takes ops, kept-callables ops and callables, "
             "markers intervals");
}

void read_ops(const JsonPlace& ops, SaveUnit& unit) {
  for (const std::string& name : ops.texts()) {
    const bool is_registered = find_op_kind(bare_name(name)) != nullptr;
    (is_registered ? unit.ops : unit.unknown_ops).push_back(is_registered ? bare_name(name) : name);
  }
}

void read_intervals(const JsonPlace& intervals, Compat compat, SaveUnit& unit) {
  for (const JsonPlace& interval : intervals.items()) {
    const std::vector<std::string> markers = interval.texts();
    if (markers.size() != 2) {
      interval.fail("an interval of " + std::to_string(markers.size()) +
                    " markers; expected the one that begins it and the one that ends it");
    }
    if (markers[0] == markers[1] && compat == Compat::strict) {
      interval.fail("the interval begins and ends at '" + markers[0] +
                    "', so that it never ends; expected two markers");
    }
    unit.intervals.emplace_back(markers[0], markers[1]);
  }
}

SaveUnit unit_from(const JsonPlace& place, const std::string& name, const Scenario& scenario) {
  const UnitKinds kinds = unit_kinds(scenario.protocol);
  SaveUnit unit;
  unit.name = name;
  place.allow_only({"ops", "callables", "intervals"});
  if (const auto ops = place.find("ops")) {
    require(*ops, kinds.ops, scenario.protocol, "ops");
    read_ops(*ops, unit);
  }
  if (const auto callables = place.find("callables")) {
    require(*callables, kinds.callables, scenario.protocol, "callables");
    unit.callables = callables->texts();
  }
  if (const auto intervals = place.find("intervals")) {
    require(*intervals, kinds.intervals, scenario.protocol, "intervals");
    read_intervals(*intervals, scenario.options.compat, unit);
  }
  return unit;
}

/// None and all by a word, others by their names.
UnitSelection selection_from(const JsonPlace& place, const UnitConfig& config) {
  if (!place.is_array()) return {.all = place.boolean()};
  UnitSelection selection;
  for (const JsonPlace& item : place.items()) {
    const std::string name = item.text();
    const auto is_it = [&](const SaveUnit& unit) { return unit.name == name; };
    if (std::none_of(config.units.begin(), config.units.end(), is_it)) {
      const std::string known = listed(config.units, &SaveUnit::name);
      item.fail("there is no save unit '" + name + "'; expected one of " +
                (known.empty() ? "those under 'units', of which there are none" : known));
    }
    selection.names.push_back(name);
  }
  return selection;
}

Json written(const UnitSelection& selection) {
  if (selection.all) return true;
  return selection.names.empty() ? Json(false) : Json(selection.names);
}

Json written(const SaveUnit& unit, bool with_unknown) {
  Json json = Json::object();
  std::vector<std::string> ops = unit.ops;
  if (with_unknown) ops.insert(ops.end(), unit.unknown_ops.begin(), unit.unknown_ops.end());
  if (!ops.empty()) json["ops"] = ops;
  if (!unit.callables.empty()) json["callables"] = unit.callables;
  for (const auto& [first, last] : unit.intervals)
    json["intervals"].push_back({first, last});
  return json;
}

}  // namespace

void read_units(const JsonPlace& protocol, Scenario& scenario) {
  UnitConfig& config = scenario.options.units;
  for (const char* key : {"units", "select", "sub_models", "keeps_any", "mode"}) {
    if (const auto place = protocol.find(key))
      require(*place, unit_kinds(scenario.protocol).any(), scenario.protocol, "save units");
  }
  for (const char* key : {"keep", "keep_every"}) {
    const auto place = protocol.find(key);
    if (place && unit_kinds(scenario.protocol).any()) {
      place->fail("protocol " + scenario.protocol +
                  " keeps what its units ask for; expected units");
    }
  }
  if (const auto units = protocol.find("units")) {
    for (const std::string& name : units->keys())
      config.units.push_back(unit_from(units->at(name), name, scenario));
  }
  if (const auto select = protocol.find("select"))
    config.selection = selection_from(*select, config);
  if (const auto models = protocol.find("sub_models")) {
    for (const std::string& owner : models->keys())
      config.sub_models[owner] = selection_from(models->at(owner), config);
  }
  if (const auto flag = protocol.find("keeps_any")) config.keeps_any = flag->boolean();
  if (const auto mode = protocol.find("mode")) {
    const std::string name = mode->text();
    if (name != "unified" && name != "by_selection")
      mode->fail("unknown mode '" + name + "'; expected unified or by_selection");
    config.reentrant_without_units = name == "by_selection";
  }
}

std::string units_json(const Scenario& scenario) {
  const UnitConfig& config = scenario.options.units;
  if (config.units.empty() || !unit_kinds(scenario.protocol).any()) return {};
  const UnitPolicy policy(config, {});
  const std::map<std::string, std::size_t> models = layers_of_models(scenario);
  const RecomputeRatio& ratio = scenario.options.recompute_ratio;
  Json json = Json::object();
  for (std::size_t i = 0; i < config.units.size(); ++i) {
    Json& unit = json[config.units[i].name] = written(config.units[i], false);
    unit["owners"] = Json::array();
    for (const auto& [owner, n_layers] : models) {
      if (!policy.is_selected(owner, i)) continue;
      unit["owners"].push_back(owner);
      if (!ratio.includes_any(owner, n_layers)) unit["without_layers"].push_back(owner);
    }
    if (config.keeps_any == false) unit["ignored"] = true;
  }
  return json.dump();
}

void write_units(const Scenario& scenario, Json& protocol) {
  const UnitConfig& config = scenario.options.units;
  if (!unit_kinds(scenario.protocol).any()) return;
  if (config.keeps_any) protocol["keeps_any"] = *config.keeps_any;
  if (config.reentrant_without_units) protocol["mode"] = "by_selection";
  if (config.units.empty()) return;
  protocol["select"] = written(config.selection);
  for (const auto& [owner, selection] : config.sub_models)
    protocol["sub_models"][owner] = written(selection);
  for (const SaveUnit& unit : config.units)
    protocol["units"][unit.name] = written(unit, true);
}

}  // namespace remat
