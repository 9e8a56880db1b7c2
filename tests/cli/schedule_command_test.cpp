#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/traces/temporary_folder.hpp"

using namespace remat;

namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

/// `schedule NAME --ranks P --microbatches M` and more.
Words words(const std::string& name, int ranks, int microbatches, const Words& more = {}) {
  Words all = {"schedule",       name,
               "--ranks",        std::to_string(ranks),
               "--microbatches", std::to_string(microbatches)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Json scheduled(Words all) {
  all.push_back("--json");
  return Json::parse(rematsim(all).out);
}

/// The one line that bad input is told in, without "error: " and its end.
std::string refusal(const Words& all, const std::string& input = "") {
  const ProgramRun run = rematsim(all, input);
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  const std::string begin = "error: ";
  REQUIRE(run.err.starts_with(begin));
  return run.err.substr(begin.size(), run.err.size() - begin.size() - 1);
}

}  // namespace

TEST_CASE("schedule prints makespan, bubble, peaks and a picture to scale", "[cli]") {
  const ProgramRun run = rematsim(words("1f1b", 2, 2, {"--replay", "pre-trigger"}));
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out ==
        "1f1b: 2 ranks, 12 actions, channel async, lowering none, replay pre-trigger\n"
        "  makespan               11\n"
        "  bubble                 3, 27.3 % of all ranks' time\n"
        "  bubble without ends    3\n"
        "  peak in flight         1 1\n"
        "  peak checkpoints       2 1\n"
        "rank 0  F0--F1--R0--........B0------R1--....B1------\n"
        "rank 1  ....F0--R0--B0------F1--R1--B1------........\n");
}

TEST_CASE("schedule --json has the promised keys", "[cli]") {
  const ProgramRun run = rematsim(words("1f1b", 2, 2, {"--json"}));
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("{\"version\":1,"));
  const Json json = Json::parse(run.out);
  CHECK(json["name"] == "1f1b");
  CHECK(json["ranks"] ==
        Json({{"F0.0", "F0.1", "B0.0", "B0.1"}, {"F1.0", "B1.0", "F1.1", "B1.1"}}));
  CHECK(json["makespan"] == 9);
  CHECK(json["bubble"] == 3);
  CHECK(json["bubble_fraction"] == Approx(1.0 / 3));
  CHECK(json["peak_in_flight"] == Json({2, 1}));
  CHECK(json["valid"] == true);
  CHECK(json["deadlock"].empty());
  const Json all = scheduled(words("1f1b", 2, 2, {"--list"}));
  CHECK(all["times"][1] == Json({{1, 2}, {2, 4}, {4, 5}, {5, 7}}));
  CHECK(all["bubbles"][1][0] == Json({{"start", 0}, {"length", 1}, {"in_flight", 0}}));
  CHECK(all["critical_path"] == Json({"F0.0", "F1.0", "B1.0", "F1.1", "B1.1", "B0.1"}));
}

TEST_CASE("schedule names what waits for what in a deadlock, and exits 1", "[cli]") {
  const Words deadlock = words("1f1b", 2, 4, {"--channel", "rendezvous"});
  const ProgramRun run = rematsim(deadlock);
  CHECK(run.exit_code == 1);
  CHECK(run.out ==
        "1f1b: 2 ranks, 32 actions, channel rendezvous, lowering naive, replay none\n"
        "it never finishes:\n"
        "  rank 0: SEND_F0.1 waits for RECV_F1.1 of rank 1, which stands behind SEND_B1.0\n"
        "  rank 1: SEND_B1.0 waits for RECV_B0.0 of rank 0, which stands behind SEND_F0.1\n");
  const Json json = scheduled(deadlock);
  CHECK(json["makespan"].is_null());
  CHECK(json["valid"] == false);
  CHECK(json["checks"]["acyclic"] == true);
  CHECK(json["checks"]["channel"] == false);
  REQUIRE(json["deadlock"].size() == 2);
  CHECK(json["deadlock"][0]["rank"] == 0);
  CHECK(json["deadlock"][0]["action"] == "SEND_F0.1");
  CHECK(json["deadlock"][0]["waits_for"] == "RECV_F1.1");
  for (const char* channel : {"async", "eager-1", "dir-fifo"})
    CHECK(rematsim(words("1f1b", 2, 4, {"--channel", channel})).exit_code == 0);
  CHECK(
      rematsim(words("1f1b", 2, 4, {"--channel", "rendezvous", "--lowering", "torch"})).exit_code ==
      0);
}

TEST_CASE("schedule holds the peaks against a memory limit", "[cli]") {
  CHECK(rematsim(words("zb-h1", 4, 8, {"--memory-limit", "4"})).exit_code == 0);
  const ProgramRun run = rematsim(words("zb-h1", 4, 8, {"--memory-limit", "3.5"}));
  CHECK(run.exit_code == 1);
  CHECK(
      run.out.find("rank 0: F0.3 waits for memory that DW0.0 frees, which stands behind F0.3\n") !=
      std::string::npos);
  const Words half = {"--freed-at-dx", "50"};
  CHECK(scheduled(words("zb-h1", 4, 8, half))["peak_in_flight"] == Json({4, 3.5, 3, 2.5}));
}

TEST_CASE("schedule reads the lists that it writes", "[cli]") {
  const TemporaryFolder folder;
  for (const std::string name : {"dualpipe", "v-half", "1f1b"}) {
    CAPTURE(name);
    const std::string csv = folder / "lists.csv";
    const std::string json = folder / "lists.json";
    CHECK(rematsim(words(name, 4, 8, {"--csv", "-o", csv})).exit_code == 0);
    CHECK(rematsim(words(name, 4, 8, {"--json", "-o", json})).exit_code == 0);
    const Json made = scheduled(words(name, 4, 8));
    for (const std::string& file : {csv, json}) {
      const Json read = scheduled({"schedule", file});
      CHECK(read["ranks"] == made["ranks"]);
      CHECK(read["makespan"] == made["makespan"]);
      CHECK(read["peak_in_flight"] == made["peak_in_flight"]);
    }
  }
}

TEST_CASE("schedule takes R's of a file as they stand, and on demand adds the wait", "[cli]") {
  const std::string csv = "0F0,0R0,0B0\n1F0,1B0\n";
  const auto makespan = [&](const Words& more) {
    Words all = {"schedule", "-", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return Json::parse(rematsim(all, csv).out)["makespan"].get<int>();
  };
  CHECK(makespan({}) == 6);
  CHECK(makespan({"--replay", "pre-trigger"}) == 6);
  CHECK(makespan({"--replay", "on-demand"}) == 7);
}

TEST_CASE("schedule says of lists that are not whole what is missing", "[cli]") {
  const ProgramRun run = rematsim({"schedule", "-"}, "0F0,0B0\n1B0\n");
  CHECK(run.exit_code == 1);
  CHECK(run.out ==
        "-: 2 ranks, 3 actions, channel async, lowering none, replay none\n"
        "it never finishes:\n"
        "  rank 1: B1.0 waits for F1.0, which no list has\n"
        "wrong: F1.0 is missing\n");
}

TEST_CASE("schedule takes costs by stage and micro-batch from a file", "[cli]") {
  const TemporaryFolder folder;
  const std::string costs = folder / "costs.json";
  std::ofstream(costs) << R"({"F": [1, [2, 3]], "B": 4, "COMM": 1})";
  const Json json = scheduled(words("gpipe", 2, 2, {"--costs", costs}));
  // F 0-1, 1-2; F1.0 2-4, F1.1 4-7, B1.0 7-11, B1.1 11-15; one more on the way: B0.1 16-20.
  CHECK(json["makespan"] == 20);
  CHECK(scheduled(words("gpipe", 2, 2, {"--costs", costs, "--cost", "COMM=0"}))["makespan"] == 18);
  CHECK(refusal(words("gpipe", 4, 2, {"--costs", costs})) == "--costs: F has 2 stages; expected 4");
}

TEST_CASE("schedule refuses bad input in one line", "[cli]") {
  const std::string names =
      "gpipe, 1f1b, interleaved-1f1b, looped-bfs, zb-h1, zb-h2, interleaved-zb, zb-v, dualpipe, "
      "dualpipe-v, v-half, v-min, seq1f1b";
  CHECK(refusal(words("1f2b", 4, 8)) ==
        "'1f2b' is neither a schedule nor a file; expected one of " + names + ", or a file");
  CHECK(refusal({"schedule", "1f1b", "--microbatches", "4"}) ==
        "--ranks is missing; expected a number");
  CHECK(refusal(words("1f1b", 4, 0)) == "--microbatches: 0 is out of range; expected 1 to 1048576");
  CHECK(refusal(words("1f1b", -4, 8)) == "--ranks: -4 is out of range; expected 1 to 1048576");
  CHECK(refusal(words("zb-v", 4, 8, {"--chunks", "1"})) ==
        "--chunks: zb-v has 2 chunks a rank, not 1");
  CHECK(refusal(words("dualpipe", 4, 9)) ==
        "--microbatches: dualpipe takes an even number, a half for each direction, not 9");
  CHECK(refusal(words("1f1b", 4, 8, {"--replay", "early"})) ==
        "--replay: 'early' is unknown; expected none, on-demand or pre-trigger");
  CHECK(refusal(words("1f1b", 4, 8, {"--distance", "1"})) ==
        "--distance is for --replay pre-trigger only");
  CHECK(refusal(words("1f1b", 4, 8, {"--replay", "pre-trigger", "--distance", "-1"})) ==
        "--distance: -1 is below 0; expected 0 or more");
  CHECK(refusal(words("1f1b", 4, 8, {"--channel", "eager-0"})) ==
        "--channel: 'eager-0' is unknown; expected one of async, rendezvous, eager-K (K at least "
        "1), pair-fifo, dir-fifo, one-fifo");
  CHECK(refusal(words("1f1b", 4, 8, {"--lowering", "other"})) ==
        "--lowering: 'other' is unknown; expected naive, torch or torch-deferred");
  for (const std::string limit : {"x", "4.", ".5", "4.123", "-1", "99999999999999999999"}) {
    CHECK(refusal(words("1f1b", 4, 8, {"--memory-limit", limit})) ==
          "--memory-limit: '" + limit +
              "' is no number of activations; expected one like 4 or "
              "4.25");
  }
  CHECK(refusal(words("1f1b", 4, 8, {"--freed-at-dx", "101"})) ==
        "--freed-at-dx: 101 is no percentage; expected 0 to 100");
  CHECK_FALSE(refusal(words("1f1b", 4, 8, {"--cost", "F=-1"})).empty());
  CHECK_FALSE(refusal(words("1f1b", 4, 8, {"--cost", "F=1.5"})).empty());
  CHECK_FALSE(refusal(words("1f1b", 4, 8, {"--costs", "no/such/file"})).empty());
  CHECK_FALSE(refusal({"schedule", "1f1b", "--ranks", "four", "--microbatches", "8"}).empty());
  CHECK_FALSE(refusal({"schedule"}).empty());
  CHECK_FALSE(refusal({"schedule", "sim"}).empty());  // a folder
}

TEST_CASE("schedule refuses bad lists in one line, with file and line", "[cli]") {
  CHECK(refusal({"schedule", "-"}, "0F0,0B0\n1F0,oops\n")
            .starts_with("standard input:2: 'oops' in cell 2 is no action; expected one like "));
  CHECK(refusal({"schedule", "-"}) == "standard input: the file is empty; expected a list a rank");
  CHECK(refusal({"schedule", "-", "--ranks", "2"}, "0F0,0B0\n") ==
        "--ranks: a file of lists says that itself");
  CHECK(refusal({"schedule", "-", "--lowering", "naive"}, "0F0,0SEND_F0,0B0\n") ==
        "--lowering: the lists have messages already");
  CHECK(refusal({"schedule", "-", "--replay", "on-demand"}, "0F0,0SEND_F0,0B0\n") ==
        "--replay: the lists have messages already; expected compute alone, or R's");
  CHECK(refusal({"schedule", "-", "--replay", "pre-trigger", "--distance", "1"}, "0F0,0R0,0B0\n") ==
        "--distance: the lists have R's already, which stay where they are");
  CHECK_FALSE(refusal({"schedule", "-"}, "{\"ranks\": 3}").empty());
  CHECK_FALSE(refusal({"schedule", "-"}, std::string(100000, '[')).empty());
  CHECK_FALSE(refusal({"schedule", "-"}, std::string(1000, '\0')).empty());
}

TEST_CASE("schedule --help has an example", "[cli]") {
  const ProgramRun run = rematsim({"schedule", "--help"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("Example:\n  rematsim schedule 1f1b --ranks 4") != std::string::npos);
}
