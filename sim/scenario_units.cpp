#include "sim/scenario_units.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "model/op_kinds.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;

/// What a protocol's units may stand for.
struct Kinds {
  bool ops = false;
  bool callables = false;
  bool intervals = false;
};

Kinds kinds_of(std::string_view protocol) {
  if (protocol == "kept-ops") return {.ops = true};
  if (protocol == "kept-callables") return {.ops = true, .callables = true};
  return {.intervals = protocol == "markers"};
}

/// A scenario with units may be run under another protocol than its own, too.
bool has_use_for_units(std::string_view protocol) {
  const Kinds kinds = kinds_of(protocol);
  return kinds.ops || kinds.intervals;
}

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
  const Kinds kinds = kinds_of(scenario.protocol);
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
      std::string known;
      for (const SaveUnit& unit : config.units)
        known += (known.empty() ? "" : ", ") + unit.name;
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

/// The models whose checkpointed regions the program has.
std::set<std::string> owners_of(const Program& program) {
  std::set<std::string> owners;
  for (const Forward& forward : program.forwards) {
    for (const Statement& statement : forward.statements) {
      const auto* region = std::get_if<RegionBegin>(&statement);
      if (region != nullptr && region->kind == RegionKind::checkpointed)
        owners.insert(region->owner);
    }
  }
  return owners;
}

}  // namespace

void read_units(const JsonPlace& protocol, Scenario& scenario) {
  UnitConfig& config = scenario.options.units;
  for (const char* key : {"units", "select", "sub_models", "keeps_any", "mode"}) {
    if (const auto place = protocol.find(key))
      require(*place, has_use_for_units(scenario.protocol), scenario.protocol, "save units");
  }
  for (const char* key : {"keep", "keep_every"}) {
    const auto place = protocol.find(key);
    if (place && has_use_for_units(scenario.protocol)) {
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
  if (config.units.empty() || !has_use_for_units(scenario.protocol)) return {};
  const UnitPolicy policy(config, {});
  Json json = Json::object();
  for (std::size_t i = 0; i < config.units.size(); ++i) {
    Json& unit = json[config.units[i].name] = written(config.units[i], false);
    unit["owners"] = Json::array();
    for (const std::string& owner : owners_of(scenario.program))
      if (policy.is_selected(owner, i)) unit["owners"].push_back(owner);
    if (config.keeps_any == false) unit["ignored"] = true;
  }
  return json.dump();
}

WrittenUnits written_units(const Scenario& scenario) {
  const UnitConfig& config = scenario.options.units;
  WrittenUnits text;
  if (!has_use_for_units(scenario.protocol)) return text;
  const auto append = [](std::string& to, std::string_view key, const Json& value) {
    to += ",\"" + std::string(key) + "\":" + value.dump();
  };
  if (config.keeps_any) append(text.before_name, "keeps_any", *config.keeps_any);
  if (config.reentrant_without_units) append(text.before_name, "mode", "by_selection");
  if (config.units.empty()) return text;
  append(text.before_state_hooks, "select", written(config.selection));
  Json models = Json::object();
  for (const auto& [owner, selection] : config.sub_models)
    models[owner] = written(selection);
  Json units = Json::object();
  for (const SaveUnit& unit : config.units)
    units[unit.name] = written(unit, true);
  if (!models.empty()) append(text.last, "sub_models", models);
  append(text.last, "units", units);
  return text;
}

}  // namespace remat
