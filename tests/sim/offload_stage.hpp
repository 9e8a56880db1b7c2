#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/scenario_run.hpp"

// Stages of offload groups, and what a run tells of their copies.

namespace remat {

inline constexpr std::int64_t tensor_bytes = 128;  // of x, 4 by 8, and of what an op makes of it

inline std::string group(const std::string& name, const std::string& body,
                         const std::string& to = "host") {
  return R"({"offload":")" + name + R"(","to":")" + to + R"(","body":[)" + body + "]}";
}
/// Three ops that each save what they are given, or made: a, and the layer's last.
inline std::string plain_layer(const std::string& in, const std::string& out) {
  return op("sin", {in}, {"a" + out}) + "," + op("gelu", {"a" + out}, {"b" + out}) + "," +
         op("tanh", {"b" + out}, {out});
}
inline std::string checkpointed_layer(const std::string& in, const std::string& out) {
  return checkpoint("l" + out, plain_layer(in, out));
}
/// x → h1 → … → h4, each layer a group; the loss reads h4.
inline std::string layers(const std::function<std::string(std::string, std::string)>& layer) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const std::string in = i == 0 ? "x" : "h" + std::to_string(i);
    text += group("g" + std::to_string(i), layer(in, "h" + std::to_string(i + 1))) + ",";
  }
  return text + loss_of("h4");
}

/// The copies of a run, in order: "d2h begin 0", storages numbered as they are first sent.
inline std::vector<std::string> copies(const ScenarioRun& run) {
  std::vector<std::string> told;
  std::vector<std::int64_t> seen;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::copy_begin && event.kind() != Kind::copy_end) continue;
    const std::int64_t storage = *event.integer(Field::storage);
    auto place = std::find(seen.begin(), seen.end(), storage);
    if (place == seen.end()) place = seen.insert(place, storage);
    told.push_back(std::string(event.text(Field::direction)) +
                   (event.kind() == Kind::copy_begin ? " begin " : " end ") +
                   std::to_string(place - seen.begin()));
  }
  return told;
}
inline std::size_t n_copies(const ScenarioRun& run, const std::string& what) {
  const std::vector<std::string> told = copies(run);
  return static_cast<std::size_t>(std::count_if(
      told.begin(), told.end(),
      [&](const std::string& copy) { return copy.compare(0, what.size(), what) == 0; }));
}

inline const LevelBytes& host(const ScenarioRun& run) {
  return run.result.offloaded[static_cast<std::size_t>(MemoryLevel::host)];
}
inline const LevelBytes& disk(const ScenarioRun& run) {
  return run.result.offloaded[static_cast<std::size_t>(MemoryLevel::disk)];
}

inline void require_sound(const ScenarioRun& run) {
  REQUIRE(run.code() == "none");
  REQUIRE(run.broken().empty());
  REQUIRE(run.result.gradients_match == true);
  REQUIRE(host(run).live == 0);
  REQUIRE(disk(run).live == 0);
}

}  // namespace remat
