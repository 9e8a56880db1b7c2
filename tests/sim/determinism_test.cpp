#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "properties/expectation.hpp"
#include "sim/prediction.hpp"
#include "sim/simulation.hpp"
#include "tests/cli/program.hpp"
#include "traces/reader.hpp"
#include "traces/trace_hash.hpp"

namespace fs = std::filesystem;

// Same scenario and seed, same bytes: twice in one process, in two processes, and in every build.
// tests/golden/trace_hashes.txt was written by one build (g++, dev); every preset is held to it.
// REMATSIM_UPDATE_GOLDEN=1 writes it anew.

namespace remat {
namespace {

const fs::path root = REMATSIM_SOURCE_DIR;

std::vector<fs::path> files_in(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(ending)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Such a scenario ends in an error, as it is meant to.
bool shows_a_hazard(const fs::path& scenario) {
  const std::string name = scenario.stem().string();
  return name.starts_with("hazard_") && !name.ends_with("_cured");
}

/// As the program runs it: with what is to be expected in the header.
std::string hash_of(const Scenario& scenario) {
  Simulation simulation = simulation_of(scenario);
  simulation.expectation = expectation_of(scenario);
  Trace trace;
  simulate(simulation, trace);
  return trace_hash(trace);
}

std::string simulated_hash(const fs::path& scenario) {
  return hash_of(read_scenario(scenario.string()));
}

std::string predicted_hash(const fs::path& recording) {
  Trace trace;
  const Prediction prediction = predicted_from(read_trace(recording.string()), trace);
  return prediction.unsupported ? std::string() : trace_hash(trace);
}

/// Hashes of all scenarios and of the predictions from all shipped recordings, by file name.
std::map<std::string, std::string> all_hashes() {
  std::map<std::string, std::string> hashes;
  for (const fs::path& scenario : files_in(root / "sim/scenarios", ".json"))
    hashes[scenario.filename().string()] = simulated_hash(scenario);
  for (const fs::path& recording : files_in(root / "traces/recorded", ".jsonl.gz")) {
    const std::string hash = predicted_hash(recording);
    if (!hash.empty()) hashes[recording.filename().string()] = hash;
  }
  return hashes;
}

}  // namespace

TEST_CASE("a simulation writes the same bytes twice in one process", "[sim][determinism]") {
  const auto hashes = all_hashes();
  CHECK(hashes.size() >= 12);
  CHECK(all_hashes() == hashes);
}

TEST_CASE("a simulation writes the same bytes in another process", "[sim][determinism]") {
  for (const fs::path& scenario : files_in(root / "sim/scenarios", ".json")) {
    const ProgramRun run = rematsim({"simulate", scenario.string(), "--json"});
    CAPTURE(scenario, run.err);
    REQUIRE(run.exit_code == (shows_a_hazard(scenario) ? 1 : 0));
    CHECK(nlohmann::json::parse(run.out)["trace_hash"] == simulated_hash(scenario));
  }
}

TEST_CASE("a simulation writes the same bytes in every build", "[sim][determinism]") {
  const fs::path golden = root / "tests/golden/trace_hashes.txt";
  const auto hashes = all_hashes();
  if (std::getenv("REMATSIM_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(golden);
    for (const auto& [name, hash] : hashes)
      file << name << " " << hash << "\n";
  }
  std::ifstream file(golden);
  REQUIRE(file);
  std::map<std::string, std::string> expected;
  for (std::string name, hash; file >> name >> hash;)
    expected[name] = hash;
  CHECK(hashes == expected);
}

TEST_CASE("another seed gives another trace", "[sim][determinism]") {
  const fs::path path = root / "sim/scenarios/selective.json";
  Scenario scenario = read_scenario(path.string());
  scenario.rank.seed += 1;
  CHECK(hash_of(scenario) != simulated_hash(path));
}

}  // namespace remat
