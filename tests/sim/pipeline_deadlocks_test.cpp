#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_lowering.hpp"
#include "schedules/pipeline_registry.hpp"
#include "sim/pipeline_run.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

PipelineRun run_through(const PipelineLists& lists, const std::string& channel) {
  PipelineSettings settings;
  settings.channel = channel_named(channel).value();
  settings.costs.latency = 1;
  return run_pipeline(lists, settings);
}

/// "0: SEND_F0.1 for RECV_F1.1 (1) behind SEND_B1.0; …"
std::string told(const PipelineRun& run) {
  std::string text;
  for (const Blocked& blocked : run.deadlock) {
    text += std::to_string(blocked.rank) + ": " + blocked.action + " for " + blocked.waits_for;
    if (blocked.waits_for_rank) text += " (" + std::to_string(*blocked.waits_for_rank) + ")";
    if (!blocked.behind.empty()) text += " behind " + blocked.behind;
    text += "; ";
  }
  return text;
}

std::string told(const std::string& csv, const std::string& channel) {
  return told(run_through(read_pipeline_lists("lists.csv", csv), channel));
}

/// Our names for what the shared files call channels and schedules.
const std::map<std::string, std::string> channels = {
    {"rendezvous", "rendezvous"}, {"eager1", "eager-1"},     {"eager2", "eager-2"},
    {"async", "async"},           {"pairfifo", "pair-fifo"}, {"dirfifo", "dir-fifo"},
    {"onefifo", "one-fifo"}};
const std::map<std::string, std::string> schedules = {{"GPipe", "gpipe"},
                                                      {"1F1B", "1f1b"},
                                                      {"ZBH1", "zb-h1"},
                                                      {"ZBH2", "zb-h2"},
                                                      {"Interleaved1F1B", "interleaved-1f1b"},
                                                      {"LoopedBFS", "looped-bfs"},
                                                      {"InterleavedZeroBubble", "interleaved-zb"},
                                                      {"ZBVZeroBubble", "zb-v"},
                                                      {"DualPipeV", "dualpipe-v"},
                                                      {"VHalf", "v-half"},
                                                      {"VMin", "v-min"}};

Lowering lowering_of(const std::string& name) {
  if (name.starts_with("naive")) return Lowering::naive;
  return name.find("defer") == std::string::npos ? Lowering::torch : Lowering::torch_deferred;
}

PipelineLists lowered_lists(const std::map<std::string, std::string>& row) {
  const PipelineRow* schedule = pipeline_named(schedules.at(row.at("schedule")));
  REQUIRE(schedule != nullptr);
  PipelineRequest request = {.ranks = std::stoi(row.at("P")),
                             .microbatches = std::stoi(row.at("M"))};
  if (schedule->chunks == PipelineRow::Chunks::any) request.chunks = 2;
  const auto lists =
      lowered(make_pipeline(*schedule, request), lowering_of(row.at("lowering")), false);
  REQUIRE(lists);
  return *lists;
}

/// "r0:SEND_F(0, 1); r1:SEND_B(1, 0)" as {"0 SEND_F0.1", "1 SEND_B1.0"}.
std::set<std::string> stuck_heads(const std::string& text) {
  static const std::regex head(R"(r(\d+):(\w+)\((\d+), (\d+)\))");
  std::set<std::string> heads;
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at)
    heads.insert((*at)[1].str() + " " + (*at)[2].str() + (*at)[3].str() + "." + (*at)[4].str());
  return heads;
}

/// Holds the columns of one shared file against runs; how many.
int compare_outcomes(const std::string& path) {
  int n_compared = 0;
  for (const auto& row : csv_rows(path)) {
    CAPTURE(row.at("schedule"), row.at("lowering"), row.at("P"));
    const PipelineLists lists = lowered_lists(row);
    for (const auto& [column, channel] : channels) {
      if (row.count(column) == 0) continue;
      CAPTURE(channel);
      const PipelineRun run = run_through(lists, channel);
      CHECK((run.is_finished() ? "ok" : "DEADLOCK") == row.at(column));
      ++n_compared;
      if (channel != "rendezvous" || run.is_finished()) continue;
      // Where every rank stands is measured; the cycle is some of that.
      const std::set<std::string> heads = stuck_heads(row.at("stuck_at"));
      for (const Blocked& blocked : run.deadlock)
        CHECK(heads.count(std::to_string(blocked.rank) + " " + blocked.action) == 1);
    }
  }
  return n_compared;
}

/// 1F1B on two ranks, in naive form.
const std::string two_ranks =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";

}  // namespace

TEST_CASE("naive and torch's lowerings hang where independent models say so", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  CHECK(compare_outcomes(*shared + "deadlock_matrix.csv") == 4 * 61);
  CHECK(compare_outcomes(*shared + "deadlock_fifo.csv") == 3 * 42);
}

TEST_CASE("minimal deadlocks hang in the channels that they are known to hang in", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  const auto cases = nlohmann::json::parse(text_of(*shared + "deadlock_cases.json"));
  CHECK(cases.size() >= 7);
  for (const auto& [name, each] : cases.items()) {
    CAPTURE(name);
    const PipelineLists lists = read_pipeline_lists(name, each.dump());
    for (const auto& [channel, outcome] : each["result"].items()) {
      CAPTURE(channel);
      CHECK(run_through(lists, channels.at(channel)).is_finished() == (outcome == "ok"));
    }
  }
}

TEST_CASE("a deadlock is told as its cycle, each entry with what it waits for", "[sim]") {
  const std::string cycle =
      "0: SEND_F0.1 for RECV_F1.1 (1) behind SEND_B1.0; 1: SEND_B1.0 for RECV_B0.0 (0) behind "
      "SEND_F0.1; ";
  CHECK(told(two_ranks, "rendezvous") == cycle);
  CHECK(told(two_ranks, "pair-fifo") == cycle);
  CHECK(told(two_ranks, "eager-1").empty());
  CHECK(told(two_ranks, "dir-fifo").empty());
}

TEST_CASE("messages in one batch do not wait for each other", "[sim]") {
  CHECK(told("0F0,0SEND_F0,0F1,BATCH(0SEND_F1+0RECV_B0),0B0,0RECV_B1,0B1\n"
             "1RECV_F0,1F0,1B0,BATCH(1SEND_B0+1RECV_F1),1F1,1B1,1SEND_B1\n",
             "rendezvous")
            .empty());
}

TEST_CASE("lists that wait for each other hang without any channel", "[sim]") {
  CHECK(told("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "async") ==
        "0: B0.0 for B1.0 (1) behind F1.1; 1: F1.1 for F0.1 (0) behind B0.0; ");
  CHECK(told("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n", "async") ==
        "0: (F0.1+B0.0) for B1.0 (1) behind F1.1; 1: F1.1 for F0.1 (0); ");
}

TEST_CASE("what no list has is waited for in vain", "[sim]") {
  CHECK(told("0F0,0B0\n1B0\n", "async") == "1: B1.0 for F1.0, which no list has; ");
  CHECK(told("0F0,0SEND_F0\n1F0,1B0\n", "rendezvous") ==
        "0: SEND_F0.0 for RECV_F1.0, which no list has; ");
  CHECK(told("0F0,0SEND_F0\n1F0,1B0\n", "async").empty());
}

TEST_CASE("a fixed order can ask for more memory than a rank has", "[sim]") {
  const PipelineLists lists = read_pipeline_lists("lists.csv", "0F0,0F1,0R0,0I0,0R1,0I1,0W0,0W1\n");
  PipelineSettings settings;
  settings.freed_early.by_dx = whole_activation / 2;
  settings.memory_limit = 150;
  CHECK(run_pipeline(lists, settings).is_finished());
  settings.memory_limit = 149;
  CHECK(told(run_pipeline(lists, settings)) ==
        "0: R0.1 for memory that DX0.1 frees (0) behind R0.1; ");
  settings.memory_limit = 50;
  CHECK(told(run_pipeline(lists, settings)) ==
        "0: R0.0 for memory that DX0.0 frees (0) behind R0.0; ");
  const PipelineLists forwards = read_pipeline_lists("lists.csv", "0F0\n");
  CHECK(told(run_pipeline(forwards, settings)) == "0: F0.0 for memory that nothing frees; ");
}

TEST_CASE("messages take the channel's time", "[sim]") {
  const auto end = [](const std::string& csv, const std::string& channel) {
    const PipelineRun run = run_through(read_pipeline_lists("lists.csv", csv), channel);
    REQUIRE(run.is_finished());
    return run.times[1].back().end;
  };
  // Two messages leave at 1 and 2 and take 1 each.
  const std::string csv = "0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1RECV_F1,1F0,1F1\n";
  CHECK(end(csv, "async") == 5);
  // A rendezvous holds the sender until 2: its second message leaves at 3.
  CHECK(end(csv, "rendezvous") == 6);
  // Queued ones do not.
  CHECK(end(csv, "pair-fifo") == 4);
}
