#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/scenario_run.hpp"

// A training loop that catches what a phase raised, and tries again (protocols.md P1, P3, H12).

using namespace remat;

namespace {

/// Where a stage raises once.
enum class Place {
  forward,         // in the region's own code
  wrapper,         // in the excluded region's body
  pack,            // in the hook that takes a save of the region
  wrapper_pack,    // … of the excluded region's body
  replay,          // in the region's own code, once it has saved something
  replay_pack,     // in the hook that takes a save of the replay
  unpack,          // in the hook that the first node of backward asks
  wrapper_unpack,  // … that a node of the excluded region's body asks
  nowhere
};
constexpr Place in_forward[] = {Place::forward, Place::wrapper, Place::pack, Place::wrapper_pack};
constexpr Place in_backward[] = {Place::replay, Place::replay_pack, Place::unpack,
                                 Place::wrapper_unpack};

std::string raise_once(const std::string& in) {
  return R"({"raise":"builtins.ValueError","in":")" + in + R"(","times":1},)";
}

/// A region of four ops, two of them excluded.
std::string stage(Place place) {
  const auto here = [&](Place at, const std::string& statement) {
    return place == at ? statement : std::string();
  };
  const std::string in_replay = R"({"branch":"replay","body":[)" +
                                raise_once("pack").substr(0, raise_once("pack").size() - 1) + "]},";
  const std::string body = here(Place::wrapper_pack, raise_once("pack")) +
                           here(Place::wrapper_unpack, raise_once("unpack")) +
                           op("matmul", {"a", "w0"}, {"t"}) + "," +
                           here(Place::wrapper, raise_once("forward")) + op("tanh", {"t"}, {"b"});
  const std::string region =
      op("sin", {"x"}, {"a"}) + R"(,{"exclude":"e","in":["a"],"out":["b"],"body":[)" + body +
      "]}," + here(Place::forward, raise_once("forward")) +
      here(Place::replay, raise_once("replay")) + here(Place::pack, raise_once("pack")) +
      here(Place::replay_pack, in_replay) + here(Place::unpack, raise_once("unpack")) +
      op("sin", {"b"}, {"y"});
  return checkpoint("r", region) + "," + op("sum", {"y"}, {"loss"});
}

std::string schedule_of(const std::string& actions) {
  return R"({"microbatches":2,"actions":[)" + actions + "]}";
}
std::string caught(const std::string& action, const std::string& more = "") {
  return R"({"action":")" + action + R"(","catch":true)" + more + "}";
}

const std::vector<std::string> every_protocol = {
    "none", "torch", "torch-reentrant", "exclude", "exclude-rederive", "torch-sac"};

bool is_of_packs(Place place) {
  return place == Place::pack || place == Place::wrapper_pack;
}
bool is_of_replays(Place place) {
  return place == Place::replay || place == Place::replay_pack;
}

ScenarioRun run_with(Place place, const std::string& protocol, const std::string& actions,
                     const std::string& steps = "1") {
  return run_stage(stage(place), protocol, "", schedule_of(actions), "{}", steps);
}

std::vector<std::uint64_t> gradients_of(const ScenarioRun& run) {
  std::vector<std::uint64_t> values;
  for (const Contribution& contribution : run.result.contributions)
    values.push_back(contribution.value.value());
  return values;
}

/// The run ended well, judged by every invariant, and made what the run without a failure makes.
void require_recovered(const ScenarioRun& run, const std::string& protocol,
                       const std::string& steps = "1") {
  const ScenarioRun undisturbed =
      run_with(Place::nowhere, protocol, R"("F0.0","B0.0","F0.1","B0.1")", steps);
  REQUIRE(undisturbed.code() == "none");
  CAPTURE(run.code(), run.broken());
  REQUIRE(run.result.caught.size() == 1);
  CHECK(run.result.caught[0].error.code == "E-USER");
  CHECK(run.code() == "none");
  CHECK(run.broken().empty());
  CHECK(run.result.gradients_match == true);
  CHECK(gradients_of(run) == gradients_of(undisturbed));
  CHECK(run.result.resident_bytes == undisturbed.result.resident_bytes);
  // The steps' ends were judged: that nothing is left is no silence.
  for (const NotChecked& left_out : run.verdict.not_checked)
    CHECK(left_out.needs.find("the run stopped") == std::string::npos);
}

}  // namespace

TEST_CASE("a forward that raised and runs again is right", "[sim][retry]") {
  for (const std::string& protocol : every_protocol) {
    for (const Place place : in_forward) {
      // A reentrant region's forward packs nothing.
      if (protocol == "torch-reentrant" && is_of_packs(place)) continue;
      CAPTURE(protocol, static_cast<int>(place));
      const ScenarioRun run =
          run_with(place, protocol, caught("F0.0") + R"(,"F0.0","B0.0","F0.1","B0.1")");
      require_recovered(run, protocol);
    }
  }
}

TEST_CASE("a micro-batch whose backward raised and that runs again is right", "[sim][retry]") {
  for (const std::string& protocol : every_protocol) {
    for (const Place place : in_backward) {
      if (protocol == "none" && is_of_replays(place)) continue;
      CAPTURE(protocol, static_cast<int>(place));
      const ScenarioRun run = run_with(
          place, protocol, R"("F0.0",)" + caught("B0.0") + R"(,"F0.0","B0.0","F0.1","B0.1")");
      require_recovered(run, protocol);
    }
  }
}

TEST_CASE("a reentrant region's packs raise in its replay alone", "[sim][retry]") {
  for (const Place place : {Place::pack, Place::wrapper_pack}) {
    CAPTURE(static_cast<int>(place));
    const ScenarioRun run =
        run_with(place, "torch-reentrant",
                 caught("F0.0") + "," + caught("B0.0") + R"(,"F0.0","B0.0","F0.1","B0.1")");
    require_recovered(run, "torch-reentrant");
    CHECK(run.result.caught[0].error.message.find("replay") != std::string::npos);
  }
}

TEST_CASE("only the step that failed differs from the others", "[sim][retry]") {
  // In the later steps everything is done twice: the first time nothing is raised.
  for (const std::string& protocol : every_protocol) {
    CAPTURE(protocol);
    const ScenarioRun run =
        run_with(Place::forward, protocol, caught("F0.0") + R"(,"F0.0","B0.0","F0.1","B0.1")", "3");
    require_recovered(run, protocol, "3");
  }
}

TEST_CASE("a backward that raised and runs again: right, or the error that the protocol has",
          "[sim][retry]") {
  struct Row {
    Place place;
    bool retains;       // the backward that fails keeps the graph
    const char* torch;  // codes: of the second try
    const char* reentrant;
    const char* excluding;
  };
  const Row rows[] = {
      // The replay begins anew for another graph task; excluded regions' entries went with the
      // first.
      {Place::replay, false, "none", "none", "E-CACHE-MISS"},
      {Place::replay_pack, false, "none", "none", "E-CACHE-MISS"},
      // Nothing had been asked for.
      {Place::unpack, false, "none", "none", "none"},
      // Nodes before it have let go of their saves, unless the graph was to be kept. A reentrant
      // region's node has not run to its end.
      {Place::wrapper_unpack, false, "E-TWICE", "none", "E-TWICE"},
      {Place::wrapper_unpack, true, "none", "none", "E-CACHE-MISS"}};
  for (const std::string& protocol : every_protocol) {
    for (const Row& row : rows) {
      if (protocol == "none" && is_of_replays(row.place)) continue;
      CAPTURE(protocol, static_cast<int>(row.place), row.retains);
      const ScenarioRun run =
          run_with(row.place, protocol,
                   R"("F0.0",)" + caught("B0.0", row.retains ? R"(,"retain":true)" : "") +
                       R"(,"B0.0","F0.1","B0.1")");
      const char* expected = protocol == "torch-reentrant"     ? row.reentrant
                             : protocol.starts_with("exclude") ? row.excluding
                                                               : row.torch;
      if (std::string(expected) == "none") {
        require_recovered(run, protocol);
      } else {
        CHECK(run.code() == expected);
      }
    }
  }
}

TEST_CASE("a selective region is served once: a second try finds what the first has used up",
          "[sim][retry]") {
  const auto run = [](const std::string& before, const std::string& after) {
    const std::string body = before + op("sin", {"x"}, {"a"}, R"("keep":true)") + "," + after +
                             op("sin", {"a"}, {"b"}) + "," + op("sin", {"b"}, {"y"});
    return run_stage(checkpoint("r", body) + "," + op("sum", {"y"}, {"loss"}), "torch-sac", "",
                     schedule_of(R"("F0.0",)" + caught("B0.0") + R"(,"B0.0")"));
  };
  const std::string raises = raise_once("replay");
  CHECK(run("", raises).code() == "E-TWICE");
  const ScenarioRun early = run(raises, "");
  CHECK(early.code() == "none");
  CHECK(early.result.gradients_match == true);
  CHECK(early.broken().empty());
}

TEST_CASE("under the same key a second try goes on with the counters of the first, and fails",
          "[sim][retry]") {
  const std::string group = R"(,"group":1)";
  const auto run = [&](const std::string& again, const std::string& compat) {
    return run_stage(stage(Place::replay), "torch", compat,
                     schedule_of(R"("F0.0",)" + caught("B0.0", group) +
                                 R"(,{"action":"B0.0","group":)" + again + "}"));
  };
  CHECK(run("2", "").code() == "none");
  const ScenarioRun strict = run("1", "");
  CHECK(strict.code() == "E-META");
  CHECK(strict.broken().front() == "saved_lists_match");  // S8: it begins at slot 2
  // Where the first had saved nothing yet there is nothing to go on with.
  const ScenarioRun early = run_stage(
      checkpoint("r", raise_once("replay") + op("sin", {"x"}, {"y"})) + "," +
          op("sum", {"y"}, {"loss"}),
      "torch", "",
      schedule_of(R"("F0.0",)" + caught("B0.0", group) + R"(,{"action":"B0.0","group":1})"));
  CHECK(early.code() == "none");
  CHECK(early.result.gradients_match == true);
  CHECK(early.broken().empty());
}

TEST_CASE("what a backward has added to gradients before it raised stays there", "[sim][retry]") {
  // The head's weight gets its gradient before the region is replayed.
  const std::string statements = checkpoint("r", raise_once("replay") + op("sin", {"x"}, {"y"})) +
                                 "," + op("matmul", {"y", "w1"}, {"z"}) + "," +
                                 op("sum", {"z"}, {"loss"});
  const auto run = [&](const std::string& retry) {
    return run_stage(statements, "torch", "",
                     schedule_of(R"("F0.0",)" + caught("B0.0") + "," + retry));
  };
  const ScenarioRun twice = run(R"("F0.0","B0.0")");
  CHECK(twice.code() == "none");
  CHECK(twice.result.gradients_match == false);
  CHECK(twice.broken() == std::vector<std::string>{"gradients_equal_plain"});
  const ScenarioRun zeroed = run(R"("ZERO_GRAD","F0.0","B0.0")");
  CHECK(zeroed.code() == "none");
  CHECK(zeroed.result.gradients_match == true);
  CHECK(zeroed.broken().empty());
  CHECK(zeroed.kinds(Kind::zero_grad) == 1);
  CHECK(run(R"("B0.0")").code() == "E-TWICE");
}

TEST_CASE("steps that fail and recover leave nothing behind", "[sim][retry]") {
  for (const std::string& protocol : every_protocol) {
    for (const Place place : {Place::wrapper, Place::replay, Place::wrapper_unpack}) {
      if (protocol == "none" && is_of_replays(place)) continue;
      CAPTURE(protocol, static_cast<int>(place));
      // It raises every time: the micro-batch is tried three times and given up.
      std::string text = stage(place);
      text.replace(text.find(R"(,"times":1)"), 10, "");
      const ScenarioRun run =
          run_stage(text, protocol, "",
                    schedule_of(caught("F0.0") + "," + caught("B0.0") + "," + caught("F0.0") + "," +
                                caught("B0.0") + "," + caught("B0.0") + R"(,"ZERO_GRAD")"));
      CHECK(run.code() == "none");
      CHECK(run.result.caught.size() >= 3);
      std::vector<RankContents> ends;
      const auto look = [&](const Rank& rank, const PhaseStep& phase) {
        if (phase.kind == PhaseStep::Kind::step_end) ends.push_back(rank.contents());
      };
      CHECK_FALSE(run_over_and_over(simulation_of(*run.scenario), 100, look).has_value());
      REQUIRE(ends.size() == 100);
      CHECK(std::count(ends.begin() + 1, ends.end(), ends[1]) == 99);
      CHECK(ends[1].nodes + ends[1].frames + ends[1].entries == 0);
    }
  }
}

TEST_CASE("a step with an error that was caught is judged, one with another is not",
          "[sim][retry]") {
  const auto judged = [](const std::string& actions) {
    const ScenarioRun run = run_with(Place::replay, "exclude", actions);
    Simulation simulation = simulation_of(*run.scenario);
    simulation.rank.fault = RankFault::dropped_graphs_kept;
    Trace trace;
    simulate(simulation, trace);
    Checker checker;
    for (std::size_t i = 0; i < trace.size(); ++i)
      checker.observe(trace[i]);
    return checker.finish();
  };
  const Verdict recovered = judged(R"("F0.0",)" + caught("B0.0") + R"(,"F0.0","B0.0")");
  REQUIRE(recovered.findings.size() == 1);
  CHECK(recovered.findings[0].invariant == "no_leak_at_step_end");
  CHECK(judged(R"("F0.0","B0.0")").findings.empty());  // it does not come to its end
}

TEST_CASE("what a forward drew before it raised is drawn: the next try draws on", "[sim][retry]") {
  const std::string body = op("dropout", {"x"}, {"a", "m"}) + "," + raise_once("forward") +
                           op("sin", {"a"}, {"b"}) + "," + op("dropout", {"b"}, {"y", "n"});
  for (const std::string& protocol : every_protocol) {
    CAPTURE(protocol);
    const ScenarioRun run =
        run_stage(checkpoint("r", body) + "," + op("sum", {"y"}, {"loss"}), protocol, "",
                  schedule_of(caught("F0.0") + R"(,"F0.0","B0.0")"));
    CHECK(run.code() == "none");
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
  }
}

TEST_CASE("a half that raised: dx begins anew, a dw that had begun cannot", "[sim][retry]") {
  const auto run = [](const std::string& actions) {
    const std::string body =
        raise_once("replay") + op("sin", {"x"}, {"h"}) + "," + op("matmul", {"h", "w0"}, {"y"});
    return run_stage(checkpoint("r", body) + "," + op("scale", {"y"}, {"loss"}), "torch", "",
                     schedule_of(actions));
  };
  const ScenarioRun dx = run(R"("F0.0",)" + caught("DX0.0") + R"(,"DX0.0","DW0.0")");
  CHECK(dx.code() == "none");
  CHECK(dx.result.gradients_match == true);
  CHECK(dx.broken().empty());
  CHECK(run(R"("F0.0",)" + caught("DX0.0") + R"(,"DW0.0")").result.error->type ==
        "builtins.KeyError");
}

TEST_CASE("a replay that is started before a backward and raises leaves its session as it is",
          "[sim][retry]") {
  const auto run = [](const std::string& first, const std::string& then) {
    ScenarioRun made = run_stage(
        checkpoint("r", first + op("sin", {"x"}, {"h"}) + "," + then + op("sin", {"h"}, {"y"})) +
            "," + op("sum", {"y"}, {"loss"}),
        "torch", "", schedule_of(R"("F0.0")"));
    Scenario& scenario = *made.scenario;
    for (Statement& statement : scenario.program.forwards[0].statements)
      if (auto* region = std::get_if<RegionBegin>(&statement)) region->knows_sessions = true;
    using enum PhaseStep::Kind;
    const PhaseStep replay{.kind = prefire, .microbatch = 0, .frames = {0}, .catches = true};
    scenario.order = {{.kind = step_begin},
                      {.kind = forward, .microbatch = 0},
                      {.kind = session_open, .session = "s"},
                      replay,
                      replay,
                      {.kind = session_close, .session = "s"},
                      {.kind = session_open, .session = "s"},
                      {.kind = backward, .microbatch = 0},
                      {.kind = session_close, .session = "s"},
                      {.kind = session_clear, .session = "s"},
                      {.kind = step_end}};
    return run_scenario(std::move(scenario));
  };
  const std::string raises = raise_once("replay");
  const ScenarioRun clean = run(raises, "");
  CHECK(clean.result.caught.size() == 1);
  CHECK(clean.code() == "none");
  CHECK(clean.result.gradients_match == true);
  CHECK(clean.broken().empty());
  // The first replay had saved x: the second goes on behind it, and is no forward's.
  const ScenarioRun dirty = run("", raises);
  REQUIRE(dirty.result.caught.size() == 2);
  CHECK(dirty.result.caught[1].error.code == "E-META");
  CHECK(dirty.broken().front() == "saved_lists_match");
}
