#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/traces/temporary_folder.hpp"

using namespace remat;

namespace {

using Json = nlohmann::ordered_json;

const std::string two_blocks = "sim/scenarios/two_blocks.json";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One checkpointed block, `sin` of `x` times `w`, and its sum; `settings` is of the form
/// `,"steps":2`.
std::string scenario(const std::string& settings = "", const std::string& body = "") {
  return R"({"format": "rematsim-scenario", "version": 1, "program": {
    "inputs": {"x": {"shape": [2, 2], "requires_grad": true}},
    "params": {"w": {"shape": [2, 2]}},
    "stages": [[
      {"checkpoint": "block", "body": [)" +
         body + R"(
        {"op": "mm", "in": ["x", "w"], "out": ["h"]},
        {"op": "sin", "in": ["h"], "out": ["y"]}]},
      {"op": "sum", "in": ["y"], "out": ["loss"]}]],
    "loss": "loss"})" +
         settings + "}";
}

const std::string under_torch = R"(, "protocol": {"name": "torch"})";

Json simulated(const std::string& text) {
  const ProgramRun run = rematsim({"simulate", "-", "--json"}, text);
  CAPTURE(run.err);
  return Json::parse(run.out);
}

}  // namespace

TEST_CASE("simulate prints time, bytes and counts, and how to run it again", "[cli]") {
  const ProgramRun run = rematsim({"simulate", two_blocks});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.rfind("sim/scenarios/two_blocks.json under torch\n", 0) == 0);
  for (const std::string row : {"  makespan  ", "  peak  ", "  resident after forward ",
                                "  added by a replay  ", "  ops  ", "  trace hash  "}) {
    CAPTURE(row);
    CHECK(run.out.find(row) != std::string::npos);
  }
  CHECK(run.out.find("equal the plain run's\n") != std::string::npos);
  CHECK(run.out.find("rematsim simulate sim/scenarios/two_blocks.json") != std::string::npos);
  CHECK(run.out.find("\x1b[") == std::string::npos);
}

TEST_CASE("simulate --protocol runs a scenario under another protocol", "[cli]") {
  const std::string border = "sim/scenarios/border_recompute_to_save.json";
  const ProgramRun own = rematsim({"simulate", border, "--json"});
  const ProgramRun other = rematsim({"simulate", border, "--json", "--protocol", "exclude"});
  CHECK(own.exit_code == 0);
  CHECK(other.exit_code == 0);
  // h of 4096 x 1024 in bf16 is rederived, or kept; y is kept.
  const std::int64_t bytes = 8'388'608;
  const Json rederived = Json::parse(own.out);
  CHECK(rederived["rederived_bytes"] == bytes);
  CHECK(rederived["resident_by_class"] == Json({{"EXCL_OUTPUT", bytes}, {"FORWARD_TMP", 2}}));
  const Json kept = Json::parse(other.out);
  CHECK(kept["rederived_bytes"] == 0);
  CHECK(kept["resident_by_class"] ==
        Json({{"EXCL_SAVED", bytes}, {"EXCL_OUTPUT", bytes}, {"FORWARD_TMP", 2}}));

  const ProgramRun text = rematsim({"simulate", border, "--protocol", "exclude"});
  CHECK(text.out.find("Again: rematsim simulate " + border + " --protocol exclude (seed 0)") !=
        std::string::npos);
  CHECK(text.out.find("  resident, EXCL_SAVED") != std::string::npos);
  const ProgramRun unknown = rematsim({"simulate", border, "--protocol", "megatron"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err ==
        "error: --protocol: unknown protocol 'megatron'; expected one of none, torch, "
        "torch-reentrant, torch-sac, exclude, exclude-rederive, remat, kept-ops, kept-callables, "
        "markers, offload\n");
  const ProgramRun nameless = rematsim({"simulate", border, "--protocol", ""});
  CHECK(nameless.exit_code == 2);
  CHECK(
      nameless.err ==
      "error: --protocol: unknown protocol ''; expected one of none, torch, torch-reentrant, "
      "torch-sac, exclude, exclude-rederive, remat, kept-ops, kept-callables, markers, offload\n");
}

TEST_CASE("simulate: an error that the training loop catches is told, and is no failure", "[cli]") {
  const std::string raises = R"({"raise": "ValueError", "in": "replay", "times": 1},)";
  const std::string retried =
      R"(, "schedule": {"actions": ["F0.0", {"action": "B0.0", "catch": true}, "B0.0"]})";
  const std::string text = scenario(under_torch + retried, raises);
  const ProgramRun run = rematsim({"simulate", "-"}, text);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("caught E-USER (ValueError): block#0 (micro-batch 0, replay): raised by the "
                     "body's own code\n") != std::string::npos);
  const Json json = simulated(text);
  CHECK(json["error"].is_null());
  REQUIRE(json["caught"].size() == 1);
  CHECK(json["caught"][0]["code"] == "E-USER");
  CHECK(json["gradients_match"] == true);
  const ProgramRun uncaught = rematsim({"simulate", "-"}, scenario(under_torch, raises));
  CHECK(uncaught.exit_code == 1);
}

TEST_CASE("simulate --json prints one object with the promised keys and nothing else", "[cli]") {
  const ProgramRun run = rematsim({"simulate", two_blocks, "--json"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.rfind("{\n  \"version\": 1,", 0) == 0);
  const Json result = Json::parse(run.out);
  for (const char* key :
       {"error", "makespan_ns", "peak_bytes", "resident_bytes", "resident_by_microbatch",
        "replay_peak_bytes", "by_class", "resident_by_class", "rederived_bytes", "ops",
        "hook_calls", "units", "ranks", "violations", "gradients_match", "trace_hash", "seed"}) {
    CAPTURE(key);
    CHECK(result.contains(key));
  }
  CHECK(result["error"].is_null());
  CHECK(result["gradients_match"] == true);
  CHECK(result["violations"].empty());
  CHECK(result["seed"] == 0);
  CHECK(result["trace_hash"].get<std::string>().size() == 32);
  CHECK(result["resident_by_microbatch"].size() == 2);
  CHECK(result["resident_by_microbatch"].back() == result["resident_bytes"]);
  REQUIRE(result["ranks"].size() == 1);
  CHECK(result["ranks"][0]["rank"] == 0);
  CHECK(result["ranks"][0]["busy_ns"] == result["makespan_ns"]);
  CHECK(result["ranks"][0]["bubble_ns"] == 0);
  CHECK(result["ranks"][0]["peak_bytes"] == result["peak_bytes"]);
}

TEST_CASE("simulate counts ops by where they ran, and slots by unit", "[cli]") {
  const Json result = simulated(scenario(under_torch));
  CHECK(result["ops"]["forward"] == Json({{"mm", 1}, {"sin", 1}, {"sum", 1}}));
  CHECK(result["ops"]["replay"]["mm"] == 1);
  CHECK_FALSE(result["ops"]["backward"].empty());
  REQUIRE(result["units"].size() == 1);
  CHECK(result["units"][0]["unit"] == "block");
  CHECK(result["units"][0]["packs"] == 4);  // w and x of mm, h of sin, the argument x
  CHECK(result["units"][0]["unpacks"] == 4);
  CHECK(result["units"][0]["replays"] == 1);
}

TEST_CASE("simulate gives bytes by owner that add up to the peak", "[cli]") {
  for (const std::string& text : {scenario(), scenario(under_torch)}) {
    const Json result = simulated(text);
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : result["by_class"].items())
      sum += bytes.get<std::int64_t>();
    CHECK(sum == result["peak_bytes"]);
  }
}

TEST_CASE("simulate without a protocol replays nothing", "[cli]") {
  const Json result = simulated(scenario());
  CHECK(result["ops"]["replay"].empty());
  CHECK(result["replay_peak_bytes"] == 0);
  CHECK(result["gradients_match"] == true);
}

TEST_CASE("simulate gives the same bytes each time, and others for another seed", "[cli]") {
  const std::string random = R"({"random": "dropout", "in": ["x"], "out": ["d", "mask"]},)";
  const auto out = [&](const std::string& settings) {
    return rematsim({"simulate", "-", "--json"}, scenario(under_torch + settings, random)).out;
  };
  CHECK(out("") == out(""));
  CHECK(out("") == out(R"(, "seed": 0)"));
  CHECK(Json::parse(out(R"(, "seed": 7)"))["seed"] == 7);
  CHECK(Json::parse(out(R"(, "seed": 7)"))["trace_hash"] != Json::parse(out(""))["trace_hash"]);
}

TEST_CASE("simulate exits 1 for an error, which it names by its code", "[cli]") {
  const std::string raising = scenario(under_torch, R"({"raise": "ValueError", "in": "replay"},)");
  const ProgramRun run = rematsim({"simulate", "-", "--json"}, raising);
  CHECK(run.exit_code == 1);
  CHECK(run.err.empty());
  const Json result = Json::parse(run.out);
  CHECK(result["error"]["code"] == "E-USER");
  CHECK(result["error"]["seq"].is_number_integer());
  CHECK(result["gradients_match"].is_null());
  const ProgramRun text = rematsim({"simulate", "-"}, raising);
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("E-USER (ValueError)") != std::string::npos);
}

TEST_CASE("simulate exits 1 for a violation, and names the invariant and its event", "[cli]") {
  // The body saves a tensor in forward that its replay does not make.
  const ProgramRun run =
      rematsim({"simulate", "-", "--json"}, scenario(under_torch, R"({"branch": "forward", "body": [
                                 {"op": "cos", "in": ["x"], "out": ["x2"]}]},)"));
  CHECK(run.exit_code == 1);
  const Json result = Json::parse(run.out);
  REQUIRE_FALSE(result["violations"].empty());
  for (const char* key : {"invariant", "seq", "message"}) {
    CAPTURE(key);
    CHECK(result["violations"][0].contains(key));
  }
}

TEST_CASE("simulate exits 1 where the peak is above the machine's memory", "[cli]") {
  const std::int64_t peak = simulated(scenario())["peak_bytes"];
  const auto with_memory = [](std::int64_t bytes) {
    return scenario(R"(, "machine": {"memory_bytes": )" + std::to_string(bytes) + "}");
  };
  CHECK(rematsim({"simulate", "-"}, with_memory(peak)).exit_code == 0);
  const ProgramRun run = rematsim({"simulate", "-"}, with_memory(peak - 1));
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("the peak is above the machine's") != std::string::npos);
}

TEST_CASE("simulate --trace writes a trace that check accepts, byte for byte the same each time",
          "[cli]") {
  const TemporaryFolder folder;
  for (const std::string name : {"a.jsonl", "b.jsonl", "c.jsonl.gz"})
    CHECK(rematsim({"simulate", two_blocks, "--trace", folder / name}).exit_code == 0);
  CHECK(content(folder / "a.jsonl") == content(folder / "b.jsonl"));
  CHECK(content(folder / "a.jsonl").rfind("{\"seq\":0,", 0) == 0);
  const ProgramRun checked =
      rematsim({"check", folder / "a.jsonl", folder / "c.jsonl.gz", "--json"});
  CHECK(checked.exit_code == 0);
  const Json result = Json::parse(checked.out);
  CHECK(result["files"][0]["verdict"] == "ok");
  CHECK(result["files"][0]["events"] == result["files"][1]["events"]);
}

TEST_CASE("simulate refuses a bad scenario in one line, and writes nothing", "[cli]") {
  const TemporaryFolder folder;
  const std::string trace = folder / "t.jsonl";
  const ProgramRun run =
      rematsim({"simulate", "-", "--trace", trace},
               "{\"format\": \"rematsim-scenario\", \"version\": 1,\n\"program\": {\"stages\": "
               "[[{\"op\": \"sin\", \"in\": [\"x\"], \"out\": [\"y\"]}]]}}");
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(run.err ==
        "error: standard input:2: 'x' is used before it is made; expected an input, a parameter or "
        "an output of an earlier statement (at /program/stages/0/0/in/0)\n");
  CHECK(folder.entries() == 0);
}

TEST_CASE("simulate says what it cannot read", "[cli]") {
  const ProgramRun nothing = rematsim({"simulate", "nosuch.json"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.out.empty());
  CHECK(nothing.err.rfind("error: nosuch.json: cannot be opened: No such file or directory", 0) ==
        0);
  const ProgramRun empty = rematsim({"simulate", "-"}, "");
  CHECK(empty.exit_code == 2);
  CHECK(empty.err == "error: standard input: the file is empty; expected a scenario\n");
  const ProgramRun folder = rematsim({"simulate", "sim"});
  CHECK(folder.exit_code == 2);
  CHECK(folder.err.find('\n') == folder.err.size() - 1);
}

TEST_CASE("simulate does not crash on brackets without end", "[cli]") {
  const ProgramRun run = rematsim({"simulate", "-"}, std::string(100000, '['));
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: standard input:1: lists and objects are nested more than 256 deep at byte 256; "
        "expected fewer\n");
}

TEST_CASE("simulate takes a product whose shape is given and that has no inputs", "[cli]") {
  const ProgramRun run =
      rematsim({"simulate", "-"}, R"({"format": "rematsim-scenario", "version": 1,
      "program": {"params": {"w": {"shape": [2, 2]}}, "loss": "l", "stages": [[
        {"op": "mm", "shape": [2, 2], "out": ["z"]},
        {"op": "mm", "in": ["z", "w"], "out": ["y"]},
        {"op": "sum", "in": ["y"], "out": ["l"]}]]}})");
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
}

TEST_CASE("simulate -o writes the file whole, and leaves nothing where it cannot", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder / "result.json";
  const ProgramRun run = rematsim({"simulate", two_blocks, "--json", "-o", path});
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(content(path) == rematsim({"simulate", two_blocks, "--json"}).out);
  const ProgramRun nowhere = rematsim({"simulate", two_blocks, "-o", folder / "no/such/folder"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.err.find("cannot be written") != std::string::npos);
  CHECK(folder.entries() == 1);
}

TEST_CASE("simulate is asked wrongly in one line and exit 2", "[cli]") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"simulate"},
                                                {"simulate", two_blocks, "--jsno"},
                                                {"simulate", two_blocks, "--trace"},
                                                {"simulate", two_blocks, two_blocks}}) {
    const ProgramRun run = rematsim(words);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err.rfind("error: ", 0) == 0);
    CHECK(run.err.find("; see rematsim simulate --help\n") == run.err.size() - 31);
  }
  const ProgramRun help = rematsim({"simulate", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("Example:\n  rematsim simulate ") != std::string::npos);
}
