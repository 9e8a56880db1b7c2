#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/ranks_stage.hpp"

// Several ranks: what they exchange, wait for, and do in replays (I-26, I-27).

namespace remat {
namespace {

struct Issued {
  std::string name;
  std::string tag;
  std::int64_t n = 0;
  friend bool operator==(const Issued&, const Issued&) = default;
};

/// By rank, in order.
std::map<std::int64_t, std::vector<Issued>> issued(const ScenarioRun& run) {
  std::map<std::int64_t, std::vector<Issued>> all;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::collective) continue;
    all[event.integer(Field::rank).value_or(-1)].push_back({std::string(event.text(Field::name)),
                                                            std::string(event.text(Field::tag)),
                                                            event.integer(Field::n).value_or(-1)});
  }
  return all;
}

std::int64_t n_tagged(const ScenarioRun& run, const std::string& run_kind) {
  std::int64_t n = 0;
  for (const auto& [rank, calls] : issued(run)) {
    for (const Issued& call : calls)
      n += call.tag.ends_with(run_kind) ? 1 : 0;
  }
  return n;
}

void require_sound(const ScenarioRun& run) {
  CAPTURE(run.broken(), run.code());
  REQUIRE_FALSE(run.result.error);
  REQUIRE(run.verdict.holds());
  REQUIRE(run.result.gradients_match == true);
}

const std::string two_blocks =
    parallel_block("a", "x", "y") + "," + parallel_block("b", "y", "z") + "," + loss_of("z");

}  // namespace

TEST_CASE("I-27: all ranks issue the same collectives, in forward, replay and backward",
          "[sim][ranks]") {
  for (const int n_ranks : {2, 3, 4}) {
    CAPTURE(n_ranks);
    const ScenarioRun run = run_ranks(n_ranks, two_blocks, R"("name":"torch","early_stop":false)",
                                      R"("schedule":{"microbatches":2},"steps":2)");
    require_sound(run);
    const auto by_rank = issued(run);
    REQUIRE(by_rank.size() == static_cast<std::size_t>(n_ranks));
    // Two blocks of two collectives, three times each, for two micro-batches in two steps.
    CHECK(by_rank.at(0).size() == 48);
    for (const auto& [rank, calls] : by_rank)
      CHECK(calls == by_rank.at(0));
    CHECK(by_rank.at(0)[0] == Issued{"all_gather", "a#0 mb 0 forward", 32});
    CHECK(by_rank.at(0)[1] ==
          Issued{"reduce_scatter", "a#0 mb 0 forward", std::int64_t{32} * n_ranks});
  }
}

TEST_CASE("E21: what a replay of a region with collectives needs of the other ranks",
          "[sim][ranks]") {
  const ScenarioRun whole = run_ranks(2, two_blocks, R"("name":"torch","early_stop":false)");
  CHECK(n_tagged(whole, "replay") == 8);
  // The last save of the region is tanh's own output: early stop leaves none of them out.
  CHECK(n_tagged(run_ranks(2, two_blocks), "replay") == 8);
  const ScenarioRun kept =
      run_ranks(2, two_blocks, R"("name":"torch-sac","keep":["all_gather","reduce_scatter"])");
  require_sound(kept);
  CHECK(n_tagged(kept, "replay") == 0);
  const ScenarioRun outside =
      run_ranks(2, checkpoint("c", op("gelu", {"x"}, {"a"})) + "," +
                       collective("all_reduce", "a", "r") + "," + loss_of("r"));
  require_sound(outside);
  CHECK(n_tagged(outside, "replay") == 0);
}

TEST_CASE("A3: collectives are kept by torch-sac, and by save units where they are told to",
          "[sim][ranks]") {
  const std::string units = R"(,"units":{"moe":{"ops":["all_gather"]}},"select":["moe"])";
  const std::vector<std::pair<std::string, std::int64_t>> rows = {
      {R"("name":"torch-sac","keep":["all_gather"])", 4},
      {R"("name":"torch-sac","keep":["all_gather"],"keep_collectives":false)", 8},
      {R"("name":"kept-ops")" + units, 8},
      {R"("name":"kept-ops","keep_collectives":true)" + units, 4}};
  for (const auto& [protocol, n_replayed] : rows) {
    CAPTURE(protocol);
    const ScenarioRun run = run_ranks(2, two_blocks, protocol);
    require_sound(run);
    CHECK(n_tagged(run, "replay") == n_replayed);
  }
}

TEST_CASE("I-26: a kept collective that writes a tensor of the body leaves it unwritten",
          "[sim][ranks]") {
  const std::string block = checkpoint("c", op("matmul", {"x", "w"}, {"h"}) + "," +
                                                op("empty", {}, {"buffer"}, R"("shape":[8,8])") +
                                                "," + collective_into("all_gather", "h", "buffer") +
                                                "," + op("gelu", {"buffer"}, {"a"})) +
                            "," + loss_of("a");
  const std::string protocol =
      R"("name":"kept-ops","units":{"moe":{"ops":["all_gather"]}},"select":["moe"])";
  const ScenarioRun sound = run_ranks(2, block, protocol);
  require_sound(sound);
  CHECK(n_tagged(sound, "replay") == 2);
  Scenario scenario = parse_scenario("test.json", ranks_scenario(2, block, protocol));
  scenario.options.fault = ProtocolFault::collectives_kept;
  const ScenarioRun run = run_scenario(std::move(scenario));
  REQUIRE(run.code() == "E-UNINIT");
  CHECK(run.result.error->message ==
        "c#0 (micro-batch 0, replay): gelu reads uninitialised storage 20: its writer "
        "all_gather was served from cache on rank 0");
}

TEST_CASE("the early rank of a collective waits for the late one", "[sim][ranks]") {
  const std::string slow = on_ranks("1", op("sin", {"x"}, {"s"}, R"("cost_ns":700)"));
  const ScenarioRun run =
      run_ranks(2, slow + "," + collective("all_reduce", "x", "r", R"("cost_ns":20)") + "," +
                       op("sum", {"r"}, {"loss"}, R"("cost_ns":1,"gradient_cost_ns":1)"));
  REQUIRE_FALSE(run.result.error);
  REQUIRE(run.result.ranks.size() == 2);
  CHECK(run.result.ranks[0].ranks_waited.ns == 700);
  CHECK(run.result.ranks[1].ranks_waited.ns == 0);
  CHECK(run.result.ranks[0].end.ns == run.result.ranks[1].end.ns);
}

TEST_CASE("events of several ranks are in the order of time, and no number is given twice",
          "[sim][ranks]") {
  const ScenarioRun run = run_ranks(3, two_blocks);
  require_sound(run);
  std::int64_t now = 0;
  std::set<std::int64_t> frames;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    CHECK(event.seq() == static_cast<std::int64_t>(i));
    if (event.kind() == Kind::frame_create)
      CHECK(frames.insert(*event.integer(Field::frame)).second);
    if (event.kind() != Kind::op) continue;
    // An op is written when it is over: the next of its rank may have been over then.
    CHECK(*event.integer(Field::ts_ns) >= now);
    now = *event.integer(Field::ts_ns);
  }
  CHECK(frames.size() == 6);
}

TEST_CASE("ranks that issue other collectives are told so", "[sim][ranks]") {
  const ScenarioRun run =
      run_ranks(2, on_ranks("0", collective("all_reduce", "x", "r")) + "," +
                       on_ranks("1", collective("all_gather", "x", "r")) + "," + loss_of("r"));
  CHECK(run.code() == "E-COLL-ORDER");
  CHECK(run.result.error->message ==
        "code outside regions (micro-batch 0, forward): rank 1 issues all_gather of 32 elements "
        "(outside regions mb 0 forward) as call 0 of group world, where rank 0 issued all_reduce "
        "of 32 elements (outside regions mb 0 forward)");
  CHECK(run.broken() == std::vector<std::string>{"collective_order"});
}

TEST_CASE("a rank that waits for what never comes is told so", "[sim][ranks]") {
  const std::string both = collective("all_reduce", "x", "q");
  const ScenarioRun run =
      run_ranks(2, both + "," + on_ranks("1", collective("all_gather", "x", "r")) + "," +
                       op("sum", {"x"}, {"loss"}));
  CHECK(run.code() == "E-DEADLOCK");
  CHECK(
      run.result.error->message ==
      "code outside regions (micro-batch 0, forward): rank 1 waits in all_gather (outside regions "
      "mb 0 forward), call 1 of group world, for rank 0");
  CHECK(run.broken() == std::vector<std::string>{"no_deadlock"});
}

TEST_CASE("a loop that catches a deadlock goes on from when nothing else could happen",
          "[sim][ranks]") {
  // Rank 0 waits for rank 1 from the start; the others are done long after, and exchange then.
  const std::string stage = on_ranks("0", collective("all_reduce", "x", "r", R"("group":"left")")) +
                            "," + on_ranks("1,2", op("sin", {"x"}, {"s"}, R"("cost_ns":500)")) +
                            "," + op("sum", {"x"}, {"loss"});
  const ScenarioRun run =
      run_ranks(3, stage, R"("name":"none")",
                R"("groups":{"left":[0,1]},"steps":2,)"
                R"("schedule":{"actions":[{"action":"F0.0","catch":true},"UPDATE"]})");
  REQUIRE_FALSE(run.result.error);
  REQUIRE(run.result.caught.size() == 2);  // in each step
  CHECK(run.result.caught[0].error.code == "E-DEADLOCK");
  CHECK(run.result.ranks[0].end.ns >= 1000);
}

TEST_CASE("groups of ranks exchange apart from each other", "[sim][ranks]") {
  const auto within = [](const std::string& group) {
    return collective("all_reduce", "x", "r", R"("group":")" + group + "\"");
  };
  const ScenarioRun run = run_ranks(
      4,
      on_ranks("0,1", within("left")) + "," + on_ranks("3,2", within("right")) + "," + loss_of("r"),
      R"("name":"none")", R"("groups":{"left":[0,1],"right":[3,2]},"steps":1)");
  require_sound(run);
  for (const auto& [rank, calls] : issued(run)) {
    CAPTURE(rank);
    CHECK(calls.size() == 2);
  }
}

TEST_CASE("each rank has values of its own, and one alone the first one's", "[sim][ranks]") {
  const std::string stage = op("matmul", {"x", "w"}, {"y"}) + "," + loss_of("y");
  const ScenarioRun alone = run_ranks(1, stage);
  const ScenarioRun two = run_ranks(2, stage);
  require_sound(alone);
  require_sound(two);
  REQUIRE(two.result.contributions.size() == 2 * alone.result.contributions.size());
  for (std::size_t i = 0; i < alone.result.contributions.size(); ++i) {
    const Ring first = two.result.contributions[i].value;
    const Ring second = two.result.contributions[alone.result.contributions.size() + i].value;
    CHECK(first == alone.result.contributions[i].value);
    CHECK_FALSE(first == second);
  }
}

TEST_CASE("ranks exchange under every protocol, and with offload", "[sim][ranks]") {
  for (const char* protocol :
       {R"("name":"none")", R"("name":"torch")", R"("name":"torch","early_stop":false)",
        R"("name":"torch-reentrant")", R"("name":"torch-sac","keep":["gelu"])",
        R"("name":"exclude")", R"("name":"exclude-rederive")", R"("name":"remat")",
        R"("name":"kept-ops","units":{"u":{"ops":["gelu"]}},"select":true)",
        R"("name":"torch","offload":true)"}) {
    CAPTURE(protocol);
    require_sound(run_ranks(2, two_blocks, protocol, R"("schedule":{"microbatches":2},"steps":2)"));
  }
}

TEST_CASE("an excluded region's collective is issued in forward alone", "[sim][ranks]") {
  const std::string block =
      checkpoint("c", op("sin", {"x"}, {"h"}) + R"(,{"exclude":"dispatch","body":[)" +
                          collective("all_to_all", "h", "d") + "]}," + op("gelu", {"d"}, {"y"})) +
      "," + loss_of("y");
  const ScenarioRun run = run_ranks(2, block, R"("name":"exclude-rederive")");
  require_sound(run);
  CHECK(n_tagged(run, "replay") == 0);
  CHECK(n_tagged(run, "forward") == 2);
  CHECK(n_tagged(run, "backward") == 2);
}

TEST_CASE("I-53: a recomputed dispatch before a kept grouped product, on two ranks",
          "[sim][ranks]") {
  const std::string block =
      checkpoint("moe", op("silu", {"x"}, {"h"}) + "," + collective("all_to_all", "h", "d") +
                            R"(,{"exclude":"experts","body":[)" +
                            op("grouped_matmul", {"d", "w"}, {"e"}) + "]}," +
                            collective("all_to_all", "e", "c") + "," + op("tanh", {"c"}, {"y"})) +
      "," + loss_of("y");
  const ScenarioRun run = run_ranks(2, block, R"("name":"exclude-rederive")",
                                    R"("schedule":{"microbatches":2},"steps":2)");
  require_sound(run);
  // Two ranks, micro-batches and steps: the dispatch again in each replay, the product never.
  CHECK(run.ops("grouped_matmul", Phase::replay) == 0);
  CHECK(run.ops("grouped_matmul", Phase::forward) == 8);
  CHECK(n_tagged(run, "replay") == 16);
}

TEST_CASE("a collective that was given up is never over, and the next ones are", "[sim][ranks]") {
  // Rank 1 skips its first call by an exception, and waits in a group of two that rank 0 never
  // comes to; both are told, and do the forward again.
  const std::string stage =
      on_ranks("0", collective("all_reduce", "x", "r")) + "," +
      on_ranks("1", R"({"catch":[{"raise":"builtins.ValueError","in":"forward","times":1},)" +
                        collective("all_reduce", "x", "r") + "]}," +
                        collective("all_reduce", "x", "q", R"("group":"two")")) +
      "," + op("sum", {"x"}, {"loss"});
  for (const char* steps : {R"("steps":1)", R"("steps":3)"}) {
    CAPTURE(steps);
    const ScenarioRun run =
        run_ranks(2, stage, R"("name":"none")",
                  std::string(R"("groups":{"two":[0,1]},)"
                              R"("schedule":{"actions":[{"action":"F0.0","catch":true},)"
                              R"({"action":"F0.0","catch":true}]},)") +
                      steps);
    CHECK_FALSE(run.result.error);
    REQUIRE_FALSE(run.result.caught.empty());
    for (const CaughtError& caught : run.result.caught)
      CHECK(caught.error.code == "E-DEADLOCK");
  }
}

TEST_CASE("ranks that go on after they disagreed meet again in the next call", "[sim][ranks]") {
  const std::string stage =
      on_ranks("0", R"({"branch":"forward","body":[)" + collective("all_reduce", "x", "r") + "]}") +
      "," + on_ranks("1", collective("all_gather", "x", "r")) + "," + op("sum", {"x"}, {"loss"});
  const ScenarioRun run = run_ranks(
      2, stage, R"("name":"none")",
      R"("schedule":{"actions":[{"action":"F0.0","catch":true},{"action":"F0.0","catch":true}]},)"
      R"("steps":2)");
  CHECK_FALSE(run.result.error);
  REQUIRE(run.result.caught.size() == 8);
  std::int64_t now = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const std::int64_t then = run.trace[i].integer(Field::ts_ns).value_or(now);
    CHECK(then >= now);
    now = then;
  }
}

TEST_CASE("ranks that exchange tensors of other types, or by other attributes, are told so",
          "[sim][ranks]") {
  const auto by = [](const std::string& operation) {
    return collective("all_reduce", "x", "r", R"("attrs":{"op":")" + operation + R"("})");
  };
  const ScenarioRun run =
      run_ranks(2, on_ranks("0", by("sum")) + "," + on_ranks("1", by("max")) + "," + loss_of("r"));
  CHECK(run.code() == "E-COLL-ORDER");
}

TEST_CASE("what some ranks alone run is theirs in counts, bytes, models and decisions",
          "[sim][ranks]") {
  const std::string more = on_ranks("1", op("sin", {"x"}, {"p"}) + "," + op("gelu", {"p"}, {"q"}));
  const std::string stage =
      checkpoint("c", more + "," + op("gelu", {"x"}, {"a"}) + "," + op("tanh", {"a"}, {"b"})) +
      "," + collective("all_reduce", "b", "r") + "," + loss_of("r");
  for (const char* protocol : {R"("name":"torch")", R"("name":"torch","recompute_ratio":0.5)",
                               R"("name":"kept-ops","units":{"u":{"ops":["gelu"]}},"select":true)",
                               R"("name":"torch-sac","keep":["gelu"])"}) {
    CAPTURE(protocol);
    require_sound(run_ranks(2, stage, protocol));
  }
  const std::string models =
      on_ranks("1", checkpoint("v", op("gelu", {"x"}, {"a"}), R"("owner":"vision")"));
  require_sound(run_ranks(2, models + "," + loss_of("x"),
                          R"("name":"torch","recompute_ratio":{"vision":0.5})"));
}

TEST_CASE("a run of several ranks that is cut short compares no gradients", "[sim][ranks]") {
  const Scenario scenario = parse_scenario("test.json", ranks_scenario(2, two_blocks));
  for (std::uint64_t n_phases = 1; n_phases < 8; ++n_phases) {
    CAPTURE(n_phases);
    Simulation simulation = simulation_of(scenario);
    simulation.events_max = n_phases;
    Trace trace;
    const SimulationResult result = simulate(simulation, trace);
    CHECK(result.was_cut_short);
    CHECK_FALSE(result.gradients_match);
  }
}

TEST_CASE("regions nested as deep as they may be have room on each rank's stack", "[sim][ranks]") {
  constexpr int depth = 60;
  std::string body = op("sin", {"x"}, {"y"}) + "," + collective("all_reduce", "y", "z");
  for (int i = 0; i < depth; ++i)
    body = checkpoint("c" + std::to_string(i), body);
  require_sound(run_ranks(2, body + "," + loss_of("z")));
}

TEST_CASE("a rank alone issues collectives of a group of one", "[sim][ranks]") {
  const ScenarioRun run = run_ranks(1, two_blocks);
  require_sound(run);
  const auto by_rank = issued(run);
  REQUIRE(by_rank.size() == 1);
  CHECK(by_rank.begin()->first == -1);  // the trace names no rank
}

}  // namespace remat
