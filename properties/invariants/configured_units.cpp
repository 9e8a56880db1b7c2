#include "properties/invariants/configured_units.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "properties/invariants/expectations.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;

[[noreturn]] void wrong(const std::string& pointer, const std::string& expected) {
  throw HeaderError(
      fmt::format("the header's save units are of another form (at /config/units{}); expected {}",
                  pointer, expected));
}

std::vector<std::string> names_at(const Json& unit, const std::string& name, const char* key) {
  std::vector<std::string> names;
  if (!unit.contains(key)) return names;
  const std::string pointer = fmt::format("/{}/{}", name, key);
  if (!unit[key].is_array()) wrong(pointer, "a list of names");
  for (const Json& item : unit[key]) {
    if (!item.is_string()) wrong(pointer, "a list of names");
    names.push_back(item.get<std::string>());
  }
  return names;
}

ConfiguredUnit unit_from(const std::string& name, const Json& json) {
  if (!json.is_object()) wrong("/" + name, "an object");
  ConfiguredUnit unit;
  unit.name = name;
  unit.ops = names_at(json, name, "ops");
  unit.callables = names_at(json, name, "callables");
  unit.owners = names_at(json, name, "owners");
  unit.without_layers = names_at(json, name, "without_layers");
  if (json.contains("ignored")) {
    if (!json["ignored"].is_boolean()) wrong("/" + name + "/ignored", "true or false");
    unit.is_ignored = json["ignored"].get<bool>();
  }
  if (!json.contains("intervals")) return unit;
  for (const Json& interval : json["intervals"]) {
    const bool is_pair = interval.is_array() && interval.size() == 2 && interval[0].is_string() &&
                         interval[1].is_string();
    if (!is_pair) wrong("/" + name + "/intervals", "pairs of markers");
    unit.intervals.emplace_back(interval[0].get<std::string>(), interval[1].get<std::string>());
  }
  return unit;
}

}  // namespace

std::vector<ConfiguredUnit> configured_units(std::string_view config_json) {
  std::vector<ConfiguredUnit> units;
  const Json config = Json::parse(config_json, nullptr, false);
  if (!config.is_object() || !config.contains("units")) return units;
  if (!config["units"].is_object()) wrong("", "an object");
  for (const auto& [name, unit] : config["units"].items())
    units.push_back(unit_from(name, unit));
  return units;
}

}  // namespace remat
