#include "sim/scenario_offload.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "model/listed.hpp"

namespace remat {
namespace {

struct Thing {
  std::string_view name;
  bool OffloadOptions::*flag;
};
constexpr std::array<Thing, 4> things = {Thing{"saved", &OffloadOptions::saved},
                                         {"region_inputs", &OffloadOptions::region_inputs},
                                         {"excluded", &OffloadOptions::excluded},
                                         {"cached", &OffloadOptions::cached}};

bool OffloadOptions::*thing_named(const JsonPlace& place) {
  const std::string name = place.text();
  for (const Thing& thing : things)
    if (thing.name == name) return thing.flag;
  place.fail("unknown thing '" + name + "'; expected one of " + listed(things, &Thing::name));
}

}  // namespace

std::optional<OffloadOptions> offload_from(const JsonPlace& place) {
  if (!place.is_object())
    return place.boolean() ? std::optional<OffloadOptions>(OffloadOptions()) : std::nullopt;
  place.allow_only({"what"});
  OffloadOptions options{
      .saved = false, .region_inputs = false, .excluded = false, .cached = false};
  for (const JsonPlace& name : place.at("what").items()) {
    bool& is_sent = options.*thing_named(name);
    if (std::exchange(is_sent, true))
      name.fail("'" + name.text() + "' is named twice; expected each thing once");
  }
  return options;
}

nlohmann::json written_offload(const OffloadOptions& options) {
  nlohmann::json what = nlohmann::json::array();
  for (const Thing& thing : things)
    if (options.*thing.flag) what.push_back(thing.name);
  if (what.size() == things.size()) return true;
  return {{"what", what}};
}

std::vector<std::string> offloaded_things() {
  std::vector<std::string> names;
  names.reserve(things.size());
  for (const Thing& thing : things)
    names.emplace_back(thing.name);
  return names;
}

LinkRates links_from(const JsonPlace& place) {
  LinkRates links;
  place.allow_only(memory_level_names);
  for (std::size_t level = 0; level < memory_level_count; ++level) {
    const auto link = place.find(memory_level_names[level]);
    if (!link) continue;
    link->allow_only({"bytes_per_second", "latency_ns"});
    if (const auto rate = link->find("bytes_per_second"))
      links[level].bytes_per_second = rate->integer(1);
    if (const auto latency = link->find("latency_ns")) links[level].latency = {latency->integer(0)};
  }
  return links;
}

nlohmann::json written_links(const LinkRates& links) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t level = 0; level < memory_level_count; ++level) {
    const LinkRate& link = links[level];
    const std::string name(memory_level_names[level]);
    if (link.bytes_per_second > 0) json[name]["bytes_per_second"] = link.bytes_per_second;
    if (link.latency.ns > 0) json[name]["latency_ns"] = link.latency.ns;
  }
  return json;
}

}  // namespace remat
