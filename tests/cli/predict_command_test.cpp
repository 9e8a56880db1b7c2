#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/traces/shared_traces.hpp"
#include "tests/traces/temporary_folder.hpp"

using namespace remat;

namespace {

using Json = nlohmann::ordered_json;

const std::string torch = "traces/recorded/02_nonreentrant_early_stop.jsonl.gz";
const std::string plain = "traces/recorded/01_mlp_no_ckpt.jsonl.gz";
const std::string other = "traces/recorded/16h_pretrigger_silent_group.jsonl.gz";

std::string recording(const std::string& path) {
  return unpacked_bytes(std::string(REMATSIM_SOURCE_DIR "/") + path);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Json> events_of(const std::string& text) {
  std::vector<Json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    events.push_back(Json::parse(line));
  return events;
}

/// What a prediction may read of a recording (docs/cli.md): header, setup and forward, and the
/// borders of later phases, with no times and no counters and numbered anew.
std::string forward_only(const std::string& text) {
  std::map<std::int64_t, std::int64_t> renumbered;
  std::string cut;
  bool is_later = false;
  for (Json event : events_of(text)) {
    const std::string kind = event["kind"];
    const std::string phase = event.value("phase", "");
    is_later |= kind == "phase_begin" && phase != "setup" && phase != "forward";
    const bool is_border = kind == "phase_begin" || kind == "phase_end" || kind == "step_begin" ||
                           kind == "step_end" || kind == "header";
    const bool is_forward = phase == "forward" || (phase == "setup" && !is_later);
    if (kind == "error" || kind == "no_error" || kind == "note" || !(is_border || is_forward))
      continue;
    for (const char* key : {"ts_ns", "dur_ns", "live"})
      event.erase(key);
    const auto seq = static_cast<std::int64_t>(renumbered.size());
    renumbered[event["seq"].get<std::int64_t>()] = seq;
    event["seq"] = seq;
    if (event.contains("op_seq") && event["op_seq"].is_number())
      event["op_seq"] = renumbered[event["op_seq"].get<std::int64_t>()];
    cut += event.dump() + "\n";
  }
  return cut;
}

/// The recording with one op of its replays called otherwise.
std::string with_other_replay(const std::string& text) {
  std::string changed;
  bool is_done = false;
  for (Json event : events_of(text)) {
    if (!is_done && event["kind"] == "op" && event["phase"] == "replay" &&
        event["name"] == "aten.gelu.default") {
      event["name"] = "aten.silu.default";
      is_done = true;
    }
    changed += event.dump() + "\n";
  }
  return changed;
}

Json first_file(const ProgramRun& run) {
  return Json::parse(run.out)["files"][0];
}

}  // namespace

TEST_CASE("predict says in a table what was foreseen, and exits 0 where it is as recorded",
          "[cli]") {
  const ProgramRun run = rematsim({"predict", torch});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(
      run.out.find("traces/recorded/02_nonreentrant_early_stop.jsonl.gz  torch                63  "
                   "as recorded\n") != std::string::npos);
  CHECK(run.out.find("\x1b[") == std::string::npos);
}

TEST_CASE("predict --json prints one object with the promised keys and nothing else", "[cli]") {
  const ProgramRun run = rematsim({"predict", torch, plain, other, "--json"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.rfind("{\n  \"version\": 1,", 0) == 0);
  const Json result = Json::parse(run.out);
  CHECK(result["matched"] == 2);
  CHECK(result["mismatched"] == 0);
  CHECK(result["unsupported"] == 1);
  REQUIRE(result["files"].size() == 3);
  const Json& file = result["files"][0];
  CHECK(file["file"] == torch);
  CHECK(file["protocol"] == "torch");
  CHECK(file["match"] == true);
  CHECK(file["first_difference"].is_null());
  CHECK(file["unsupported"].is_null());
  CHECK_FALSE(file.contains("predicted"));
  CHECK(result["files"][1]["protocol"] == "none");
  CHECK(result["files"][2]["match"].is_null());
  CHECK(result["files"][2]["unsupported"] ==
        "a pretrigger phase: what it reads is not visible in the forward part");
}

TEST_CASE("predict names the protocol that the recording ran under", "[cli]") {
  const std::map<std::string, std::string> protocols = {
      {"01_mlp_no_ckpt", "none"},
      {"04_reentrant", "torch-reentrant"},
      {"05a_nested", "torch"},
      {"07_sac_policy_mm_attn", "torch-sac"},
      {"15_remat_save_chain_placeholder", "remat"}};
  for (const auto& [name, protocol] : protocols) {
    CAPTURE(name);
    const ProgramRun run = rematsim({"predict", "traces/recorded/" + name + ".jsonl.gz", "--json"});
    CHECK(run.exit_code == 0);
    CHECK(first_file(run)["protocol"] == protocol);
    CHECK(first_file(run)["match"] == true);
  }
}

TEST_CASE("predict --list prints every event", "[cli]") {
  const Json events = first_file(rematsim({"predict", torch, "--list", "--json"}))["predicted"];
  REQUIRE(events.size() == 63);
  CHECK(events[0] == "replay layer2#0");
  CHECK(events[1] == "op aten.t.default");
  CHECK(events[2] == "save f2.0");
  CHECK(events[62] == "unpack f0.1");
  const ProgramRun run = rematsim({"predict", torch, "--list"});
  std::string listed;
  for (const Json& event : events)
    listed += "  " + event.get<std::string>() + "\n";
  CHECK(run.out.find(listed) != std::string::npos);
}

TEST_CASE("predict foresees the same from a recording that is cut down to its forward", "[cli]") {
  for (const std::string name :
       {"01_mlp_no_ckpt", "02_nonreentrant_early_stop", "03_nonreentrant_no_early_stop",
        "04_reentrant", "05a_nested", "07_sac_policy_mm_attn", "12_1f1b_four_microbatches",
        "13d_dxdw_zb_order", "F_batchnorm_twice_nonreentrant"}) {
    CAPTURE(name);
    const std::string path = "traces/recorded/" + name + ".jsonl.gz";
    const Json whole = first_file(rematsim({"predict", path, "--list", "--json"}));
    const ProgramRun run =
        rematsim({"predict", "-", "--list", "--json"}, forward_only(recording(path)));
    CHECK(run.exit_code == 0);
    CHECK(run.err.empty());
    const Json cut = first_file(run);
    CHECK(cut["predicted"] == whole["predicted"]);
    CHECK(cut["protocol"] == whole["protocol"]);
    CHECK(cut["match"].is_null());
    CHECK(cut["first_difference"].is_null());
    CHECK(cut["unsupported"].is_null());
  }
}

TEST_CASE("predict without a backward to compare with says so", "[cli]") {
  const ProgramRun run = rematsim({"predict", "-"}, forward_only(recording(torch)));
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("  predicted\n") != std::string::npos);
}

TEST_CASE("predict exits 1 where the recording is otherwise, and says where", "[cli]") {
  const std::string changed = with_other_replay(recording(torch));
  const ProgramRun run = rematsim({"predict", "-", "--json"}, changed);
  CHECK(run.exit_code == 1);
  const Json result = Json::parse(run.out);
  CHECK(result["mismatched"] == 1);
  CHECK(result["files"][0]["match"] == false);
  CHECK(result["files"][0]["first_difference"] == Json({{"index", 6},
                                                        {"predicted", "op aten.gelu.default"},
                                                        {"recorded", "op aten.silu.default"}}));
  const ProgramRun text = rematsim({"predict", "-"}, changed);
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("event 6: predicted op aten.gelu.default, recorded op aten.silu.default\n") !=
        std::string::npos);
}

TEST_CASE("predict says where a recording ends too early", "[cli]") {
  std::string text = recording(torch);
  const std::string before = "{\"seq\":200,";
  const std::size_t cut = text.find(before);
  REQUIRE(cut != std::string::npos);
  const Json file = first_file(rematsim({"predict", "-", "--json"}, text.substr(0, cut)));
  CHECK(file["match"] == false);
  CHECK(file["first_difference"]["recorded"].is_null());
}

TEST_CASE("predict --trace writes a trace that can be checked and has the predicted events",
          "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder / "simulated.jsonl.gz";
  CHECK(rematsim({"predict", torch, "--trace", path}).exit_code == 0);
  const ProgramRun checked = rematsim({"check", path, "--json"});
  CHECK(checked.exit_code == 0);
  CHECK(first_file(checked)["verdict"] == "ok");
  const Json again = first_file(rematsim({"predict", path, "--list", "--json"}));
  CHECK(again["match"] == true);
  CHECK(again["predicted"] ==
        first_file(rematsim({"predict", torch, "--list", "--json"}))["predicted"]);
}

TEST_CASE("predict --trace is of one recording that can be predicted", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder / "simulated.jsonl";
  const ProgramRun two = rematsim({"predict", torch, plain, "--trace", path});
  CHECK(two.exit_code == 2);
  CHECK(two.out.empty());
  CHECK(two.err == "error: --trace writes the trace of one prediction; expected one recording\n");
  const ProgramRun unsupported = rematsim({"predict", other, "--trace", path});
  CHECK(unsupported.exit_code == 0);
  CHECK(unsupported.out.find("not predicted: a pretrigger phase") != std::string::npos);
  CHECK(folder.entries() == 0);
}

TEST_CASE("predict of one unreadable file prints one line", "[cli]") {
  const ProgramRun run = rematsim({"predict", "nosuch.jsonl"});
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(run.err ==
        "error: nosuch.jsonl: cannot be opened: No such file or directory; expected a trace (JSON "
        "Lines, plain or gzip)\n");
  const ProgramRun input = rematsim({"predict", "-"}, "{\"seq\":0,\"kind\":\"no");
  CHECK(input.exit_code == 2);
  CHECK(input.err.rfind("error: standard input:1: ", 0) == 0);
  CHECK(input.err.find('\n') == input.err.size() - 1);
}

TEST_CASE("predict judges the other files where one cannot be read, and exits 2", "[cli]") {
  const ProgramRun run = rematsim({"predict", plain, "nosuch.jsonl", torch, "--json"});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: nosuch.jsonl: cannot be opened: No such file or directory; expected a trace (JSON "
        "Lines, plain or gzip)\n");
  const Json result = Json::parse(run.out);
  CHECK(result["matched"] == 2);
  REQUIRE(result["files"].size() == 3);
  CHECK(result["files"][1]["verdict"] == "invalid");
  CHECK(result["files"][1]["match"].is_null());
  CHECK(result["files"][2]["match"] == true);
  const ProgramRun text = rematsim({"predict", plain, "nosuch.jsonl"});
  CHECK(text.exit_code == 2);
  CHECK(text.out.find("  invalid\n") != std::string::npos);
}

TEST_CASE("predict -o writes the file whole, and leaves nothing where it cannot", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder / "result.json";
  const ProgramRun run = rematsim({"predict", torch, "--json", "-o", path});
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(content(path) == rematsim({"predict", torch, "--json"}).out);
  const ProgramRun nowhere = rematsim({"predict", torch, "-o", folder / "no/such/folder"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.err.find("cannot be written") != std::string::npos);
  CHECK(folder.entries() == 1);
}

TEST_CASE("predict is asked wrongly in one line and exit 2", "[cli]") {
  const ProgramRun none = rematsim({"predict"});
  CHECK(none.exit_code == 2);
  CHECK(none.err == "error: no trace is named; expected one or more files (- is standard input)\n");
  const ProgramRun misspelt = rematsim({"predict", torch, "--lsit"});
  CHECK(misspelt.exit_code == 2);
  CHECK(misspelt.out.empty());
  CHECK(misspelt.err.find("see rematsim predict --help\n") != std::string::npos);
  const ProgramRun help = rematsim({"predict", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("Example:\n  rematsim predict ") != std::string::npos);
}
