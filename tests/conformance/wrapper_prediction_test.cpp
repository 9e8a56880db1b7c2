#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/prediction.hpp"
#include "tests/conformance/forward_part.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/diff.hpp"
#include "traces/reader.hpp"

// Recordings of real exclusion wrappers and recompute sessions, where they lie beside the checkout.

namespace fs = std::filesystem;

namespace remat {
namespace {

fs::path recordings() {
  const char* given = std::getenv("REMATSIM_SHARED");
  return fs::path(given != nullptr ? given : REMATSIM_SHARED_DEFAULT) / "data" / "hyperparallel" /
         "traces";
}

void judge(const std::string& path) {
  CAPTURE(path);
  const Trace recording = read_trace(path);
  Trace simulated;
  const Prediction prediction = predicted_from(recording, simulated);
  CHECK_FALSE(prediction.unsupported);
  CHECK(prediction.match.value_or(true));
  CHECK(prediction.predicted == comparable_events(recording));
  const TemporaryFolder folder;
  Trace of_the_cut;
  const Prediction again =
      predicted_from(forward_part(recording, folder / "cut.jsonl"), of_the_cut);
  CHECK(again.predicted == prediction.predicted);
}

void judge_all(const std::string& list, int n_min) {
  if (!fs::is_directory(recordings())) {
    WARN("not run: there is no folder " << recordings().string());
    return;
  }
  std::ifstream names(recordings() / list);
  REQUIRE(names);
  int n = 0;
  for (std::string name; names >> name; ++n)
    judge((recordings() / name).string());
  CHECK(n > n_min);
}

}  // namespace

TEST_CASE("every recording of exclusion wrappers that can be foreseen goes as predicted",
          "[conformance]") {
  judge_all("predictable.txt", 100);
}

TEST_CASE("every recording of recompute sessions that can be foreseen goes as predicted",
          "[conformance]") {
  judge_all("predictable_sessions.txt", 20);
}

}  // namespace remat
