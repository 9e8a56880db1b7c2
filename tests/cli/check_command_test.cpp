#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/traces/temporary_folder.hpp"

using namespace remat;

namespace {

const std::string clean = "traces/recorded/02_nonreentrant_early_stop.jsonl.gz";
const std::string broken = "traces/recorded/13e_dxdw_graphexecgroup_linear.jsonl.gz";

const std::string header = R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1})";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("check says in a table what was found, and exits 0 where all holds", "[cli]") {
  const ProgramRun run = rematsim({"check", clean});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out ==
        "trace                                                     events  verdict    found\n"
        "traces/recorded/02_nonreentrant_early_stop.jsonl.gz          549  ok\n"
        "\n"
        "1 trace, 549 events: 1 ok.\n"
        "Not checked in it, for want of what they need: gradients_equal_plain, collective_order, "
        "no_deadlock, stream_order, peak_within_bound, offload_lifecycle, boundaries_match, "
        "policy_stable, diagnostics_sound.\n"
        "Try next: rematsim check --list (what each invariant says), rematsim check "
        "traces/recorded/02_nonreentrant_early_stop.jsonl.gz --summary (its counts and bytes), "
        "--json (for scripts).\n");
}

TEST_CASE("check exits 1 for a violation and prints what proves it", "[cli]") {
  const ProgramRun run = rematsim({"check", broken});
  CHECK(run.exit_code == 1);
  CHECK(run.err.empty());
  CHECK(run.out.find("violation  slot_used_once at event 274") != std::string::npos);
  CHECK(run.out.find("events: 251, 274") != std::string::npos);
  CHECK(run.out.find("1 trace, 316 events: 0 ok, 1 with 1 violation.") != std::string::npos);
}

TEST_CASE("check --json prints one object with the promised keys and nothing else", "[cli]") {
  const ProgramRun run = rematsim({"check", clean, broken, "--json"});
  CHECK(run.exit_code == 1);
  CHECK(run.out.rfind("{\"version\":1,", 0) == 0);
  const nlohmann::json result = nlohmann::json::parse(run.out);
  CHECK(result["violations"] == 1);
  REQUIRE(result["files"].size() == 2);
  CHECK(result["files"][0]["file"] == clean);
  CHECK(result["files"][0]["events"] == 549);
  CHECK(result["files"][0]["verdict"] == "ok");
  CHECK(result["files"][0]["violations"].empty());
  CHECK(result["files"][0]["not_checked"][0]["invariant"] == "gradients_equal_plain");
  CHECK(result["files"][1]["verdict"] == "violation");
  const nlohmann::json& violation = result["files"][1]["violations"][0];
  CHECK(violation["invariant"] == "slot_used_once");
  CHECK(violation["seq"] == 274);
  CHECK(violation["events"] == nlohmann::json({251, 274}));
  CHECK_FALSE(violation["message"].get<std::string>().empty());
}

TEST_CASE("check judges the other files where one cannot be read, and exits 2", "[cli]") {
  const ProgramRun run = rematsim({"check", "nosuch.jsonl", broken, clean, "--json"});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: nosuch.jsonl: cannot be opened: No such file or directory; expected a trace (JSON "
        "Lines, plain or gzip)\n");
  const nlohmann::json result = nlohmann::json::parse(run.out);
  CHECK(result["files"][0]["verdict"] == "invalid");
  CHECK(result["files"][1]["verdict"] == "violation");
  CHECK(result["files"][2]["verdict"] == "ok");
}

TEST_CASE("check of one unreadable file prints one line", "[cli]") {
  const ProgramRun run = rematsim({"check", "-"}, header + "\n{\"seq\":1,\"kind\":\"no");
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(run.err.rfind("error: standard input:2: the line is cut off", 0) == 0);
  CHECK(run.err.find('\n') == run.err.size() - 1);
}

TEST_CASE("check reads standard input, plain and gzipped", "[cli]") {
  CHECK(rematsim({"check", "-"}, header + "\n").exit_code == 0);
  const ProgramRun packed =
      rematsim({"check", "-", "--json"}, content(std::string(REMATSIM_SOURCE_DIR "/") + clean));
  CHECK(packed.exit_code == 0);
  CHECK(nlohmann::json::parse(packed.out)["files"][0]["events"] == 549);
}

TEST_CASE("check --invariant runs those named only, and tells a trace behind them from a name",
          "[cli]") {
  CHECK(rematsim({"check", broken, "--invariant", "version_unchanged"}).exit_code == 0);
  CHECK(rematsim({"check", "--invariant", "slot_used_once", "op_counts", broken}).exit_code == 1);
  const ProgramRun unknown = rematsim({"check", broken, "--invariant", "slots_used_once"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.rfind("error: unknown invariant 'slots_used_once'; expected one of "
                          "unpack_follows_replay, slot_used_once, ",
                          0) == 0);
}

TEST_CASE("check --list explains each invariant in two lines", "[cli]") {
  const ProgramRun run = rematsim({"check", "--list"});
  CHECK(run.exit_code == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 51);  // a name and two lines each
  const ProgramRun json = rematsim({"check", "--list", "--json"});
  CHECK(nlohmann::json::parse(json.out)["invariants"].size() == 17);
}

TEST_CASE("check --summary adds the summary of each trace", "[cli]") {
  const ProgramRun run = rematsim({"check", clean, "--summary", "--json"});
  const nlohmann::json summary = nlohmann::json::parse(run.out)["files"][0]["summary"];
  CHECK(summary["replays"] == nlohmann::json({{"layer0#0", 1}, {"layer1#0", 1}, {"layer2#0", 1}}));
  CHECK(summary["peak_bytes"] == 1992);
  CHECK(rematsim({"check", clean, "--summary"}).out.find("replays       3: ") != std::string::npos);
}

TEST_CASE("check --verbose names what is unknown and what was not checked", "[cli]") {
  const std::string trace =
      header + "\n{\"seq\":1,\"kind\":\"newer\"}\n{\"seq\":2,\"kind\":\"note\",\"x\":1}\n";
  const ProgramRun run = rematsim({"check", "-", "--verbose"}, trace);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("unknown kind newer: 1 event") != std::string::npos);
  CHECK(run.out.find("unknown field note.x: 1 event") != std::string::npos);
  CHECK(
      run.out.find(
          "not checked: stream_order; the trace would need launch events on two or more streams") !=
      std::string::npos);
}

TEST_CASE("check -o writes the file whole, and leaves nothing where it cannot", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder / "result.json";
  const ProgramRun run = rematsim({"check", clean, "--json", "-o", path});
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(nlohmann::json::parse(content(path))["files"][0]["verdict"] == "ok");
  const ProgramRun nowhere = rematsim({"check", clean, "-o", folder / "no/such/folder"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.err.find("cannot be written") != std::string::npos);
  CHECK(folder.entries() == 1);
}

TEST_CASE("check says what is wrong with the header's expectation", "[cli]") {
  const ProgramRun run = rematsim(
      {"check", "-"},
      R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"mm":"two"}}})");
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: standard input:1: the header's expectation is of another form (at "
        "/expect/op_counts/mm); expected an integer of at least 0\n");
}

TEST_CASE("bad usage is one line and exit 2", "[cli]") {
  CHECK(rematsim({}).err ==
        "error: no command is given; expected one of check, predict, simulate, schedule, fuzz, "
        "shrink, "
        "mutants, selfcheck, schema; see "
        "rematsim --help\n");
  CHECK(rematsim({"chek"}).err ==
        "error: unknown command 'chek'; expected one of check, predict, simulate, schedule, fuzz, "
        "shrink, "
        "mutants, selfcheck, schema; see "
        "rematsim --help\n");
  CHECK(rematsim({"check"}).err ==
        "error: no trace is named; expected one or more files (- is standard input)\n");
  CHECK(rematsim({"check", "--jsno"}).exit_code == 2);
  CHECK(rematsim({"schema", "scenarios"}).err ==
        "error: there is no schema 'scenarios'; expected one of trace, scenario\n");
}

TEST_CASE("help and version are asked for on every level", "[cli]") {
  CHECK(rematsim({"--version"}).out == "rematsim 0.1.0\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"-h"}, {"check", "--help"}, {"schema", "-h"}}) {
    const ProgramRun run = rematsim(words);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("Example:\n  rematsim ") != std::string::npos);
  }
}
