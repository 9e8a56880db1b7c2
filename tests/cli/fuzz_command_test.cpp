#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
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
namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json json_of(const std::vector<std::string>& words, int exit_code) {
  const ProgramRun run = rematsim(words);
  CAPTURE(run.err);
  CHECK(run.exit_code == exit_code);
  return Json::parse(run.out);
}

double seconds_of_run(const std::vector<std::string>& words, int exit_code) {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(rematsim(words).exit_code == exit_code);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("fuzz tells in JSON what it ran, what it saw and what repeats it", "[cli]") {
  const Json json = json_of({"fuzz", "--seed", "3", "--cases", "500", "--json"}, 0);
  CHECK(json.begin().key() == "version");
  CHECK(json["cases"] == 500);
  CHECK(json["events"] > 500 * 20);
  CHECK(json["violations"].empty());
  CHECK(json["discarded"] == 0);
  CHECK(json["digest"].get<std::string>().size() == 32);
  CHECK(json["seed"] == 3);
  CHECK(json["why"].is_null());
  for (const char* key : {"seconds", "cases_per_second"})
    CHECK(json[key] > 0);
  for (const char* key : {"cells", "codes", "features", "strategies", "sometimes", "op_kinds"})
    CHECK_FALSE(json["coverage"][key].empty());
  SECTION("the digest is the seed's and the cases', not the jobs'") {
    const Json other =
        json_of({"fuzz", "--seed", "3", "--cases", "500", "--jobs", "2", "--json"}, 0);
    CHECK(other["digest"] == json["digest"]);
    CHECK(other["coverage"] == json["coverage"]);
  }
}

TEST_CASE("fuzz prints a failure small, as a program, with what proves it and runs it again",
          "[cli]") {
  const ProgramRun run = rematsim({"fuzz", "--mutant", "M23", "--cases", "1000"});
  CHECK(run.exit_code == 1);
  CHECK(run.err.empty());
  const std::string again = "rematsim fuzz --case ";
  for (const std::string part :
       {"FAIL unpack_follows_replay  protocol torch, case ", "  again: rematsim fuzz --case R3.",
        " --mutant M23\n", "1 region, ", "nothing more can be taken away", "    region r0(x):\n",
        "    step: F0.0 B0.0 (retain) B0.0\n", "  events that prove it:\n    {\"seq\":",
        "Again: rematsim fuzz --seed 0 --cases 1000 --mutant M23\n"}) {
    CAPTURE(part);
    CHECK(holds(run.out, part));
  }
  const std::size_t begin = run.out.find(again) + again.size();
  const std::string token = run.out.substr(begin, run.out.find(' ', begin) - begin);
  SECTION("the token alone runs the case again, with the fault or without") {
    const ProgramRun failing = rematsim({"fuzz", "--case", token, "--mutant", "M23"});
    CHECK(failing.exit_code == 1);
    CHECK(holds(failing.out, "FAIL unpack_follows_replay: "));
    const ProgramRun sound = rematsim({"fuzz", "--case", token});
    CHECK(sound.exit_code == 0);
    CHECK(holds(sound.out, "holds. Again: rematsim fuzz --case " + token));
    const Json json = json_of({"fuzz", "--case", token, "--mutant", "M23", "--json"}, 1);
    CHECK(json["cases"] == 1);
    CHECK(json["violations"][0]["invariant"] == "unpack_follows_replay");
  }
  SECTION("shrink makes nothing more of it, and tells where there is nothing to shrink") {
    const Json json = json_of({"shrink", token, "--mutant", "M23", "--json"}, 1);
    CHECK(json["violation"]["case"] == token);
    CHECK(json["violation"]["minimal"] == true);
    CHECK(holds(rematsim({"shrink", token}).out, "the case holds: there is nothing to shrink"));
    CHECK(rematsim({"shrink", token}).exit_code == 0);
  }
}

TEST_CASE("fuzz saves a failure as a scenario and a trace that check and simulate take", "[cli]") {
  const TemporaryFolder folder;
  const std::string saved = folder / "failures";
  const Json json =
      json_of({"fuzz", "--mutant", "M25", "--cases", "1000", "--save", saved, "--json"}, 1);
  REQUIRE(json["violations"].size() == 1);
  CHECK(json["mutant"] == "M25 keep-recomputed");
  std::string base;
  for (const auto& entry : fs::directory_iterator(saved)) {
    if (entry.path().extension() == ".jsonl") base = (saved / entry.path().stem()).string();
  }
  REQUIRE_FALSE(base.empty());
  const ProgramRun checked = rematsim({"check", base + ".jsonl", "--json"});
  CHECK(checked.exit_code == 1);
  CHECK(Json::parse(checked.out)["files"][0]["violations"][0]["invariant"] == "peak_within_bound");
  CHECK(content(base + ".scenario.json") == json["violations"][0]["scenario"].dump(1) + "\n");
  // No scenario plants a fault: the saved one is sound, and runs its case again by its file too.
  CHECK(rematsim({"simulate", base + ".scenario.json"}).exit_code == 0);
  CHECK(rematsim({"fuzz", "--case", base + ".scenario.json", "--mutant", "M25"}).exit_code == 1);
  CHECK(rematsim({"shrink", base + ".scenario.json", "--mutant", "M25"}).exit_code == 1);
}

TEST_CASE("fuzz emits every case as files that simulate to the same trace", "[cli]") {
  const TemporaryFolder folder;
  const std::string emitted = folder / "cases";
  CHECK(rematsim({"fuzz", "--cases", "12", "--emit", emitted}).exit_code == 0);
  CHECK(rematsim({"fuzz", "--case", emitted + "/case-000003.scenario.json"}).exit_code == 0);
  int n = 0;
  for (const auto& entry : fs::directory_iterator(emitted)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++n;
    CHECK(rematsim({"check", entry.path().string()}).exit_code <= 1);
    std::string scenario = entry.path().string();
    scenario.replace(scenario.size() - 6, 6, ".scenario.json");
    CHECK(rematsim({"simulate", scenario}).exit_code <= 1);
  }
  CHECK(n == 12);
  CHECK(fs::exists(emitted + "/case-000000.scenario.json"));
}

TEST_CASE("fuzz writes reports that CI systems read", "[cli]") {
  const TemporaryFolder folder;
  const std::string junit = folder / "junit.xml";
  const std::string sarif = folder / "report.sarif";
  CHECK(rematsim({"fuzz", "--mutant", "M23", "--cases", "1000", "--junit", junit, "--sarif", sarif})
            .exit_code == 1);
  const std::string xml = content(junit);
  for (const std::string part :
       {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>", " failures=\"1\" ",
        "<property name=\"seed\" value=\"0\"/>",
        "<testcase classname=\"rematsim.torch\" name=\"unpack_follows_replay\">\n",
        "\n      <failure type=\"unpack_follows_replay\" message=\"again: rematsim fuzz ",
        "type=\"unpack_follows_replay\" message=\"again: rematsim fuzz --case R3.",
        "<testcase classname=\"rematsim.none\" name=\"rng_position\"/>"}) {
    CAPTURE(part);
    CHECK(holds(xml, part));
  }
  CHECK_FALSE(holds(xml, "{\"seq\""));  // quotes are escaped
  const Json report = Json::parse(content(sarif));
  CHECK(report["version"] == "2.1.0");
  const Json& result = report["runs"][0]["results"][0];
  CHECK(result["ruleId"] == "unpack_follows_replay");
  CHECK(holds(result["message"]["text"], "again: rematsim fuzz --case R3."));
  CHECK(result["partialFingerprints"]["rematsim/v1"].get<std::string>().size() == 16);
  bool is_known = false;
  for (const Json& rule : report["runs"][0]["tool"]["driver"]["rules"])
    is_known |= rule["id"] == result["ruleId"];
  CHECK(is_known);
}

TEST_CASE("fuzz keeps a corpus, and runs it before anything else", "[cli]") {
  const TemporaryFolder folder;
  const std::string corpus = folder / "corpus";
  CHECK(json_of({"fuzz", "--cases", "2000", "--corpus", corpus, "--json"}, 0)["corpus_cases"] == 0);
  const auto n = std::distance(fs::directory_iterator(corpus), fs::directory_iterator());
  CHECK(n > 5);
  const Json again = json_of({"fuzz", "--cases", "2000", "--corpus", corpus, "--json"}, 0);
  CHECK(again["corpus_cases"] == n);
  CHECK(std::distance(fs::directory_iterator(corpus), fs::directory_iterator()) == n);
  SECTION("a case of another generator is said and left out") {
    std::ofstream(corpus + "/old.case") << "R9.xyz\n";
    const ProgramRun run = rematsim({"fuzz", "--cases", "1", "--corpus", corpus});
    CHECK(run.exit_code == 0);
    CHECK(holds(run.err, "left out: " + corpus +
                             "/old.case: 'R9.xyz' is no case: it is of another version of the "
                             "generator"));
  }
  SECTION("a failure in it is found first, and told under its own protocol") {
    const Json found = json_of({"fuzz", "--mutant", "M22", "--cases", "0", "--corpus", corpus,
                                "--max-failures", "3", "--json"},
                               1);
    for (const Json& violation : found["violations"]) {
      CHECK(violation["invariant"] == "boundaries_match");
      CHECK(violation["protocol"] == "exclude-rederive");
    }
  }
}

TEST_CASE("fuzz ends with its budget", "[cli]") {
  // No timed limit: that it ends at all, and not before.
  CHECK(seconds_of_run({"fuzz", "--budget", "300ms"}, 0) >= 0.3);
  CHECK(json_of({"fuzz", "--budget", "0s", "--json"}, 0)["cases"] < 100'000);
}

TEST_CASE("fuzz stops at a Ctrl-C, and prints what it has", "[cli]") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    execl(REMATSIM_PROGRAM, "rematsim", "fuzz", "--budget", "1h", "--json", "-o", out.c_str(),
          nullptr);
    _exit(127);
  }
  // Once a start has had its time; again where that was too early to be caught.
  int status = 0;
  for (int i = 0; i < 100; ++i) {
    usleep(100'000);
    kill(child, SIGINT);
    if (waitpid(child, &status, WNOHANG) == child) break;
  }
  if (!WIFEXITED(status)) {
    WARN("the second Ctrl-C came before the first was seen");
    return;
  }
  CHECK(WEXITSTATUS(status) == 130);
  const Json json = Json::parse(content(out));
  CHECK(json["interrupted"] == true);
  CHECK(json["cases"].is_number_integer());  // none, where a sanitizer is slow
}

TEST_CASE("fuzz is asked wrongly in one line and exit 2", "[cli]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"--seed", "x"},
       "--seed 'x' is no seed; expected a number, 0x and hexadecimal digits, or the 40 digits of a "
       "commit"},
      {{"--budget", "soon"}, "--budget 'soon' is no time; expected 60s, 500ms, 2m or 1h"},
      {{"--budget", "-1s"}, "--budget '-1s' is no time; expected 60s, 500ms, 2m or 1h"},
      {{"--jobs", "0", "--cases", "1"},
       "--jobs '0' is no number of jobs; expected 1 to 1024, or auto"},
      {{"--shard", "3/3", "--cases", "1"},
       "--shard '3/3' is no part; expected I/N with I from 0 to N - 1"},
      {{"--protocol", "torchh"},
       "unknown protocol 'torchh'; expected one of none, torch, torch-reentrant, torch-sac, "
       "exclude, exclude-rederive, remat, kept-ops, kept-callables, markers, offload"},
      {{"--mutant", "M999"},
       "unknown mutant 'M999'; expected one of M1, M2, M3, M4, M5, M6, M6b, M6c, M6d, M7, M8, "
       "M9, M10, M11, M12, M13, M14, M15, M16, M17, M18, M19, M20, M21, M22, M23, M24, M25, M26, "
       "M27, M28, M29, M30, M31, M32, M33, M34, M35, M36, M37, M38, M39, M40, M47, M48, M49, M50, "
       "X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11"},
      {{"--case", "AAA"}, "'AAA' is no case: it does not begin with R3."},
      {{"--case", "sim/scenarios/two_blocks.json"},
       "sim/scenarios/two_blocks.json: no case is named in it; expected a token, or a scenario "
       "that fuzz or shrink has saved, with its 'case'"},
  };
  for (const auto& [words, message] : rows) {
    std::vector<std::string> all = {"fuzz"};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramRun run = rematsim(all);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err == "error: " + message + "\n");
  }
}

TEST_CASE("fuzz refuses what would be ignored, empty or endless", "[cli]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"fuzz", "--cases", "-1"}, "--cases: '-1' is no number; expected 0 or more"},
      {{"fuzz", "--cases", "99999999999999999999"},
       "--cases: '99999999999999999999' is no number; expected 0 or more"},
      {{"fuzz", "--max-failures", "0"}, "--max-failures: is 0; expected 1 or more"},
      {{"fuzz", "--case", ""}, "--case: is empty; expected a value"},
      {{"fuzz", "--mutant", ""}, "--mutant: is empty; expected a value"},
      {{"mutants", ""}, "NAME: is empty; expected a value"},
      {{"selfcheck", "--cases", "0"}, "--cases: is 0; expected 1 or more"},
      {{"fuzz", "--case", "R3.AA", "--save", "x"}, "--case excludes --save"},
      {{"fuzz", "--trace", "x"}, "--trace requires --case"},
  };
  for (const auto& [words, message] : rows) {
    const ProgramRun run = rematsim(words);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err == "error: " + message + "; see rematsim " + words[0] + " --help\n");
  }
}

TEST_CASE("fuzz finds out before it starts that a result has nowhere to go", "[cli]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const std::string nowhere = folder / "none/x";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-o", nowhere},
                                             {"--junit", nowhere},
                                             {"--sarif", nowhere},
                                             {"--save", folder / "file"},
                                             {"--corpus", folder / "file"},
                                             {"--emit", folder / "file"}}) {
    std::vector<std::string> all = {"fuzz", "--budget", "1h"};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramRun run = rematsim(all);
    CAPTURE(words[0], run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.rfind("error: ", 0) == 0);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  }
}

TEST_CASE("fuzz takes a text of any length for a case, and says what is wrong with it", "[cli]") {
  CHECK(rematsim({"fuzz", "--case", "R3." + std::string(5000, 'A')}).exit_code == 2);
  CHECK(rematsim({"fuzz", "--case", "none/here.case"}).err ==
        "error: none/here.case: there is no such file; expected one, or a token\n");
}

TEST_CASE("what repeats a part of a campaign names the part", "[cli]") {
  const ProgramRun run = rematsim({"fuzz", "--cases", "50", "--shard", "1/3"});
  CHECK(holds(run.out, "Again: rematsim fuzz --seed 0 --cases 50 --shard 1/3\n"));
}

TEST_CASE("fuzz takes seeds as numbers, as hexadecimal digits and as commits", "[cli]") {
  const auto digest = [](const std::string& seed) {
    return json_of({"fuzz", "--seed", seed, "--cases", "20", "--json"}, 0)["digest"];
  };
  CHECK(digest("255") == digest("0xff"));
  CHECK(digest("00000000000000ff" + std::string(24, '0')) == digest("255"));
  CHECK(digest("255") != digest("254"));
}

TEST_CASE("mutants tells which invariant caught each, after how many cases", "[cli]") {
  const Json json = json_of({"mutants", "M23", "X8", "--json"}, 0);
  CHECK(json["caught"] == 2);
  CHECK(json["missed"] == 0);
  const Json& first = json["mutants"][0];
  CHECK(first["name"] == "M23 key-by-frame-only");
  CHECK(first["protocol"] == "torch");
  CHECK(first["invariant"] == "unpack_follows_replay");
  CHECK(first["caught_by"] == "unpack_follows_replay");
  CHECK(first["cases"] > 0);
  CHECK(first["counterexample_events"] > 20);
  CHECK(json["mutants"][1]["caught_by"] == "selfcheck");
  SECTION("a mutant that survives is told, and is exit 1") {
    const Json missed = json_of({"mutants", "M35", "--cases", "1", "--json"}, 1);
    CHECK(missed["missed"] == 1);
    CHECK(missed["mutants"][0]["caught"] == false);
    CHECK(missed["mutants"][0]["caught_by"].is_null());
    CHECK(missed["why"] == "a mutant survived");
    const Json late = json_of({"mutants", "M35", "--budget", "0s", "--json"}, 1);
    CHECK(late["why"] == "there was no time for all of them");
    CHECK(late["mutants"][0]["was_run"] == false);
  }
  SECTION("the matrix repeats over 30 seeds") {
    const Json matrix =
        json_of({"mutants", "M23", "--matrix", "--json"}, 0)["mutants"][0]["matrix"];
    CHECK(matrix["seeds"] == 30);
    CHECK(matrix["caught"] == 30);
    CHECK(matrix["cases_min"] <= matrix["cases_median"]);
    CHECK(matrix["cases_median"] <= matrix["cases_max"]);
  }
  SECTION("and so it does for a person") {
    const ProgramRun run = rematsim({"mutants", "M23"});
    CHECK(holds(run.out, "caught M23 key-by-frame-only"));
    CHECK(holds(run.out, "1 of 1 mutants caught by the invariant that is meant.\n"));
  }
}

TEST_CASE("selfcheck finds every run the same, or names the first event that is not", "[cli]") {
  const Json sound = json_of({"selfcheck", "--cases", "400", "--json"}, 0);
  CHECK(sound["agrees"] == true);
  CHECK(sound["comparisons"].size() == 4);
  for (const Json& comparison : sound["comparisons"])
    CHECK(comparison["digest"] == sound["comparisons"][0]["digest"]);
  const Json broken = json_of({"selfcheck", "--cases", "40", "--mutant", "X8", "--json"}, 1);
  CHECK(broken["agrees"] == false);
  CHECK(broken["comparisons"][3]["name"] == "another process, 2 jobs");
  for (const Json& comparison : broken["comparisons"]) {
    CHECK(comparison["agrees"] == false);
    CHECK(holds(comparison["first_event"], "\"ts_ns\":"));
  }
}
