#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/prediction.hpp"
#include "tests/conformance/forward_part.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/reader.hpp"
#include "traces/summary.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

std::vector<ResidentBytes> resident_of(const Trace& trace) {
  SummaryBuilder summary;
  for (std::size_t i = 0; i < trace.size(); ++i)
    summary.observe(trace[i]);
  return summary.finish().resident;
}

/// Bytes that an optimizer's phase made and left behind (momentum): the forward part does not show
/// what an optimizer keeps.
std::int64_t optimizer_state_of(const Trace& recording) {
  std::map<std::int64_t, std::int64_t> alive;
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const EventView event = recording[i];
    const auto storage = event.integer(Field::storage);
    if (event.kind() == Kind::storage_alloc && event.phase() == Phase::optimizer)
      alive[*storage] = event.integer(Field::bytes).value_or(0);
    if (event.kind() == Kind::storage_free && event.phase() == Phase::optimizer)
      alive.erase(*storage);
    if (event.kind() == Kind::phase_begin && event.phase() == Phase::forward && !alive.empty())
      break;
  }
  std::int64_t bytes = 0;
  for (const auto& [storage, n] : alive)
    bytes += n;
  return bytes;
}

bool observes_plain_saves(const Trace& recording) {
  return recording[0].text(Field::plain_save_observation) == "hooks";
}

std::vector<std::string> invariants_of(const Verdict& verdict) {
  std::vector<std::string> names;
  for (const Finding& finding : verdict.findings)
    names.push_back(finding.invariant);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// What the simulated trace may break: no more than the recording, which a wrong order makes wrong
/// too. That its gradients are wrong only the simulator knows: it has the plain run.
bool may_break(const std::string& invariant, const std::vector<std::string>& by_recording) {
  const std::string& cause =
      invariant == "gradients_equal_plain" ? std::string("version_unchanged") : invariant;
  return std::find(by_recording.begin(), by_recording.end(), cause) != by_recording.end();
}

void judge(const std::string& path) {
  const Trace recording = read_trace(path);
  Trace simulated;
  const Prediction prediction = predicted_from(recording, simulated);
  if (prediction.unsupported) {
    WARN(path << ": not predicted: " << *prediction.unsupported);
    return;
  }
  CAPTURE(path);
  CHECK(prediction.match.value_or(true));
  if (prediction.not_compared) {
    WARN(path << ": not compared: " << *prediction.not_compared);
  } else {
    CHECK(prediction.predicted == comparable_events(recording));
  }
  const TemporaryFolder folder;
  Trace of_the_cut;
  const Prediction again =
      predicted_from(forward_part(recording, folder / "cut.jsonl"), of_the_cut);
  CHECK_FALSE(again.match.has_value());
  CHECK(again.predicted == prediction.predicted);

  if (prediction.not_compared) return;
  const std::vector<std::string> by_recording = invariants_of(check(recording));
  for (const std::string& invariant : invariants_of(check(simulated))) {
    CAPTURE(invariant);
    CHECK(may_break(invariant, by_recording));
  }
  if (!observes_plain_saves(recording)) return;
  const std::vector<ResidentBytes> want = resident_of(recording);
  const std::vector<ResidentBytes> have = resident_of(simulated);
  REQUIRE(have.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(have[i].bytes == want[i].bytes - (i == 0 ? 0 : optimizer_state_of(recording)));
}

}  // namespace

TEST_CASE("the shipped recordings go as predicted from their forward part", "[conformance]") {
  int n = 0;
  for (const auto& file :
       fs::directory_iterator(fs::path(REMATSIM_SOURCE_DIR) / "traces/recorded")) {
    if (file.path().extension() != ".gz") continue;
    judge(file.path().string());
    ++n;
  }
  CHECK(n >= 12);
}

TEST_CASE("every torch recording that can be foreseen goes as predicted", "[conformance]") {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path folder =
      fs::path(given != nullptr ? given : REMATSIM_SHARED_DEFAULT) / "data" / "recorded" / "traces";
  if (!fs::is_directory(folder)) {
    WARN("not run: there is no folder " << folder.string());
    return;
  }
  std::ifstream names(folder / "predictable.txt");
  REQUIRE(names);
  int n = 0;
  for (std::string name; names >> name; ++n)
    judge((folder / name).string());
  CHECK(n > 40);
}

}  // namespace remat
