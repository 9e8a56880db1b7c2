#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "properties/invariants/checker.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "traces/reader.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

const std::string nothing;  // compared with, so that a failure prints what there is

using Json = nlohmann::json;

/// What is wrong with the verdict, held against a row of verdicts.json; empty where it is right.
std::string complaint(const Json& row, const Verdict& verdict) {
  if ((row["verdict"] == "ok") != verdict.holds())
    return verdict.holds() ? "nothing was found" : "something was found";
  if (verdict.holds()) return {};
  const Finding& first = verdict.findings.front();
  if (row.contains("seq") && (first.invariant != row["invariant"] || first.seq != row["seq"]))
    return "the first finding is not " + row["invariant"].dump() + " at " + row["seq"].dump();
  bool named = false;
  for (const Finding& finding : verdict.findings) {
    const bool is_it = finding.invariant == row["invariant"];
    named = named || is_it;
    const Json also = row.value("also", Json::array());
    if (!is_it && std::find(also.begin(), also.end(), Json(finding.invariant)) == also.end())
      return finding.invariant + " was found too";
  }
  return named ? std::string() : row["invariant"].dump() + " was not named";
}

void judge_all_in(const fs::path& folder) {
  std::ifstream file(folder / "verdicts.json");
  REQUIRE(file);
  const Json rows = Json::parse(file);
  CHECK_FALSE(rows.empty());
  for (const Json& row : rows) {
    const Verdict verdict = check(read_trace((folder / row["file"].get<std::string>()).string()));
    CAPTURE(row["file"], verdict.findings);
    CHECK(complaint(row, verdict) == nothing);
  }
}

}  // namespace

TEST_CASE("our own cases are judged right", "[invariants][cases]") {
  judge_all_in(fs::path(REMATSIM_SOURCE_DIR) / "tests" / "golden" / "cases");
}

TEST_CASE("the shared cases and recordings are judged right", "[invariants][cases]") {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path shared = fs::path(given != nullptr ? given : REMATSIM_SHARED_DEFAULT) / "data";
  if (!fs::is_directory(shared)) {
    WARN("no " << shared.string() << ": only our own cases are judged");
    return;
  }
  judge_all_in(shared / "cases");
  judge_all_in(shared / "recorded" / "traces");
}

}  // namespace remat
