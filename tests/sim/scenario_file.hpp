#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/scenario_run.hpp"

namespace remat {

/// What to write instead of what.
struct TextEdit {
  std::string from;
  std::string to;
};

/// The text of a scenario of sim/scenarios, changed in these places, each of which it must have.
inline std::string scenario_text(const std::string& name, const std::vector<TextEdit>& edits = {}) {
  std::ifstream file(std::string(REMATSIM_SOURCE_DIR) + "/sim/scenarios/" + name + ".json");
  REQUIRE(file);
  std::ostringstream read;
  read << file.rdbuf();
  std::string text = read.str();
  for (const TextEdit& edit : edits) {
    REQUIRE(text.find(edit.from) != std::string::npos);
    for (std::size_t at = 0; (at = text.find(edit.from, at)) != std::string::npos;) {
      text.replace(at, edit.from.size(), edit.to);
      at += edit.to.size();
    }
  }
  return text;
}

inline ScenarioRun run_file(const std::string& name, const std::vector<TextEdit>& edits = {}) {
  return run_text(scenario_text(name, edits));
}

/// The scenario under another protocol than exclude-rederive.
inline TextEdit under(const std::string& protocol) {
  return {R"("name": "exclude-rederive")", R"("name": ")" + protocol + "\""};
}
/// The scenario with one more option of its protocol.
inline TextEdit with(const std::string& option) {
  return {R"("name": "exclude-rederive")", R"("name": "exclude-rederive", )" + option};
}
/// The scenario, which has none, with this schedule.
inline TextEdit scheduled(const std::string& schedule) {
  return {R"("protocol": {)", R"("schedule": )" + schedule + R"(, "protocol": {)"};
}

/// The gradient of each leaf, over all of the run.
inline std::map<std::string, std::uint64_t> gradients_of(const ScenarioRun& run) {
  std::map<std::string, Ring> sums;
  for (const Contribution& contribution : run.result.contributions)
    sums[run.scenario->program.values[contribution.leaf].name] += contribution.value;
  std::map<std::string, std::uint64_t> gradients;
  for (const auto& [name, sum] : sums)
    gradients[name] = sum.value();
  return gradients;
}

/// No error, nothing found, and the gradients are those of a run that checkpoints nothing.
inline void require_sound(const ScenarioRun& run, const ScenarioRun& plain) {
  CAPTURE(run.broken());
  REQUIRE(run.code() == "none");
  CHECK(run.verdict.holds());
  CHECK(run.result.gradients_match == true);
  CHECK_FALSE(gradients_of(run).empty());
  CHECK(gradients_of(run) == gradients_of(plain));
}

/// Bytes alive at the end of forward that are counted for the class.
inline std::int64_t resident(const ScenarioRun& run, OwnerClass owner) {
  return run.result.resident.by_class[static_cast<std::size_t>(owner)];
}

/// One tensor that an excluded region's body saves.
struct ExcludedSave {
  std::string slot;
  std::string wrapper;
  std::string path;  // of the argument that a replay brings it by; empty: it is kept
  std::string value;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
};

inline ExcludedSave excluded_save(const Trace& trace, const EventView& event) {
  const TensorView tensor = *event.tensor(Field::tensor);
  const Layout& layout = trace.layout(tensor.layout);
  std::string path(event.text(Field::path));
  path.erase(std::remove(path.begin(), path.end(), '"'), path.end());  // it is JSON
  return {std::string(event.text(Field::slot)),
          std::string(event.text(Field::wrapper)),
          path,
          std::string(tensor.value),
          layout.shape,
          layout.stride};
}

/// All that excluded regions' bodies saved, in order.
inline std::vector<ExcludedSave> excluded_saves(const ScenarioRun& run) {
  std::vector<ExcludedSave> saves;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::pack && event.has(Field::wrapper))
      saves.push_back(excluded_save(run.trace, event));
  }
  return saves;
}

/// The paths of those that a replay brings, with their region: "gemm arg0".
inline std::vector<std::string> rederived_paths(const ScenarioRun& run) {
  std::vector<std::string> paths;
  for (const ExcludedSave& save : excluded_saves(run))
    if (!save.path.empty()) paths.push_back(save.wrapper + " " + save.path);
  return paths;
}

/// Boundaries by excluded region, in forward or in replays.
inline std::map<std::string, std::int64_t> boundaries_of(const ScenarioRun& run,
                                                         const std::string& exec) {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::boundary && event.text(Field::exec) == exec)
      ++counts[std::string(event.text(Field::wrapper))];
  }
  return counts;
}

}  // namespace remat
