#include <catch2/catch.hpp>

#include "tests/sim/scenario_file.hpp"

// The hazards of one stage (protocols.md §3.3), each beside its cure.

using namespace remat;

namespace {

using Names = std::vector<std::string>;

bool mentions(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

/// Ends in this error, whose message has all of these parts, and an invariant finds it too.
void require_hazard(const ScenarioRun& run, const std::string& code, const Names& parts,
                    const std::string& invariant) {
  REQUIRE(run.code() == code);
  const std::string& message = run.result.error->message;
  for (const std::string& part : parts)
    CHECK(mentions(message, part));
  const Names broken = run.broken();
  CAPTURE(broken);
  CHECK(std::find(broken.begin(), broken.end(), invariant) != broken.end());
}

void require_cured(const std::string& name) {
  require_sound(run_file(name), run_file(name, {under("none")}));
}

}  // namespace

TEST_CASE("hazard H2: early stop comes before a saved region without a boundary",
          "[sim][hazards]") {
  const std::string name = "hazard_h02_early_stop";
  const ScenarioRun run = run_file(name);
  require_hazard(run, "E-SLOT-EMPTY",
                 {"wrapper square#0 in block#0 (micro-batch 0, backward), input arg0",
                  "it ended after 1 of 1 outer saves"},
                 "unpack_follows_replay");
  CHECK(run.count("stop") == 1);
  // Without early stop the replay gets there: the boundary is missed by nobody.
  const ScenarioRun whole = run_file(name, {{R"("early_stop": true)", R"("early_stop": false)"}});
  require_sound(whole, run_file(name, {under("none"), {R"(, "boundaries": "none")", ""}}));
  require_cured("hazard_h02_cured");
}

TEST_CASE("hazard H3: nothing starts the replay of a saved region without a boundary",
          "[sim][hazards]") {
  const ScenarioRun run = run_file("hazard_h03_no_outer_save");
  require_hazard(
      run, "E-SLOT-EMPTY",
      {"wrapper square#0 in block#0 (micro-batch 0, backward), input arg0", "it was not started"},
      "unpack_follows_replay");
  CHECK(run.broken() == Names{"unpack_follows_replay"});
  CHECK(run.count("replay block#0") == 0);
  // Turning early stop off starts no replay either.
  CHECK(run_file("hazard_h03_no_outer_save", {with(R"("early_stop": false)")}).code() ==
        "E-SLOT-EMPTY");
  require_cured("hazard_h03_cured");
}

TEST_CASE("hazard H4: a replay has fewer boundaries than forward", "[sim][hazards]") {
  const ScenarioRun run = run_file("hazard_h04_boundary_count");
  require_hazard(run, "E-COUNT",
                 {"block#0 (micro-batch 0, backward): forward saved 2 tensors, the replay 0"},
                 "boundaries_match");
  CHECK(mentions(run.verdict.findings.front().message, "wrapper pair#0 of block#0"));
  CHECK(boundaries_of(run, "forward") == std::map<std::string, std::int64_t>{{"pair", 2}});
  CHECK(boundaries_of(run, "replay").empty());
  require_cured("hazard_h04_cured");
}

TEST_CASE("hazard H4: one placeholder stands for two outputs", "[sim][hazards]") {
  Scenario scenario = parse_scenario("h04.json", scenario_text("hazard_h04_cured"));
  scenario.rank.fault = RankFault::one_placeholder;
  require_hazard(run_scenario(std::move(scenario)), "E-COUNT",
                 {"forward saved 2 tensors, the replay 1"}, "boundaries_match");
}

TEST_CASE("hazard H5: a parameter is updated before the replay that reads it", "[sim][hazards]") {
  const std::string name = "hazard_h05_update_before_replay";
  require_hazard(
      run_file(name), "E-MUTATED",
      {"block#1 (micro-batch 1, backward): 'g' was written between its forward and its replay"},
      "version_unchanged");
  // What is published does not look, and says nothing.
  const ScenarioRun as_published = run_file(name, {with(R"("compat": "public")")});
  CHECK(as_published.code() == "none");
  CHECK(as_published.result.gradients_match == false);
  CHECK(as_published.broken() == Names{"version_unchanged", "gradients_equal_plain"});
  require_cured("hazard_h05_cured");
}

TEST_CASE("hazard H8: dx uses up what dw needs", "[sim][hazards]") {
  const std::string name = "hazard_h08_dx_consumes";
  const ScenarioRun run = run_file(name);
  require_hazard(run, "E-CACHE-MISS",
                 {"wrapper gemm#1 in block#0 (micro-batch 0, replay)",
                  "no forward entry; the replay ran 2 calls, forward 1"},
                 "slot_used_once");
  CHECK(run.count("replay block#0") == 2);
  // Under one group there is no second replay, but the boundary's save was handed out to dx.
  const ScenarioRun grouped =
      run_file(name, {{R"({"backward": "split"})",
                       R"({"actions": ["F0.0", {"action": "DX0.0", "group": 0},
                                               {"action": "DW0.0", "group": 0}]})"}});
  CHECK(grouped.code() == "E-TWICE");
  CHECK(grouped.count("replay block#0") == 1);
  // It is the split that does it.
  const ScenarioRun whole = run_file(name, {{R"("backward": "split")", R"("backward": "full")"}});
  require_sound(
      whole, run_file(name, {under("none"), {R"("backward": "split")", R"("backward": "full")"}}));
}

TEST_CASE("hazard H12: a replay that raised is tried again under the same key", "[sim][hazards]") {
  const ScenarioRun run = run_file("hazard_h12_same_key");
  REQUIRE(run.result.caught.size() == 1);
  require_hazard(run, "E-META",
                 {"block#0 (micro-batch 0, backward): the replay saved other tensors than forward"},
                 "saved_lists_match");
  const ScenarioRun cured = run_file("hazard_h12_cured");
  CHECK(cured.result.caught.size() == 1);
  CHECK(cured.code() == "none");
  CHECK(cured.broken().empty());
  CHECK(cured.result.gradients_match == true);
}

TEST_CASE("hazard H17: a gradient enters a saved region past its boundaries", "[sim][hazards]") {
  const ScenarioRun run = run_file("hazard_h17_escape");
  require_hazard(
      run, "E-SLOT-EMPTY",
      {"wrapper square#0 in block#0 (micro-batch 0, backward), input arg0", "it was not started"},
      "unpack_follows_replay");
  CHECK(run.broken() == Names{"unpack_follows_replay"});
  CHECK(boundaries_of(run, "forward") == std::map<std::string, std::int64_t>{{"square", 1}});
  require_cured("hazard_h17_cured");
}

TEST_CASE("hazard H18: a rederived input is written after the region", "[sim][hazards]") {
  const std::string name = "hazard_h18_written_input";
  require_hazard(run_file(name), "E-SLOT-STALE",
                 {"wrapper square#0 in block#0 (micro-batch 0, backward), input arg0",
                  "it was overwritten after the replay filled it (version 0 to 1)"},
                 "version_unchanged");
  const ScenarioRun as_published = run_file(name, {with(R"("compat": "public")")});
  CHECK(as_published.code() == "none");
  CHECK(as_published.broken() == Names{"version_unchanged"});
  require_cured("hazard_h18_cured");
}

TEST_CASE(
    "I-54: a batch norm's statistics move twice where a replay runs it, once where only forward "
    "does",
    "[sim][hazards]") {
  const std::string moves = R"({"no_grad":[{"in_place":"add","in":["b7","h"]}]})";
  const auto layer = [](const std::string& statistics) {
    return checkpoint("norm", op("mm", {"x", "w0"}, {"h"}) + "," + statistics + "," +
                                  op("tanh", {"h"}, {"y"})) +
           "," + loss_of("y");
  };
  const auto n_moves = [](const ScenarioRun& run) { return run.kinds(Kind::mutate); };
  const ScenarioRun silent = run_stage(layer(moves), "torch", R"("compat":"torch")");
  CHECK(silent.code() == "none");
  CHECK(n_moves(silent) == 2);
  CHECK_FALSE(silent.broken().empty());
  const ScenarioRun strict = run_stage(layer(moves), "torch");
  CHECK(strict.code() == "E-MUTATED");
  CHECK(mentions(strict.result.error->message,
                 "'b7' was written between its forward and its replay"));
  const ScenarioRun cured =
      run_stage(layer(R"({"branch":"forward","body":[)" + moves + "]}"), "torch");
  CHECK(cured.code() == "none");
  CHECK(cured.broken().empty());
  CHECK(cured.result.gradients_match == true);
  CHECK(n_moves(cured) == 1);
}

TEST_CASE("I-46: whether a replay runs is told by the run, not by whether autograd is on",
          "[sim][hazards]") {
  // In a reentrant region forward runs without autograd and the replay with it; elsewhere both
  // with.
  const auto effect_in = [](const std::string& run) {
    return R"({"branch":")" + run + R"(","body":[{"side_effect":")" + run + "\"}]}";
  };
  const std::string effects = effect_in("forward") + "," + effect_in("replay");
  const std::string body = R"({"no_grad":[)" + effects + "]}," + effects + "," +
                           op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"});
  for (const std::string protocol : {"torch", "torch-reentrant", "none"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(checkpoint("r", body) + "," + loss_of("y"), protocol);
    CHECK(run.code() == "none");
    Names told;
    for (std::size_t i = 0; i < run.trace.size(); ++i) {
      if (run.trace[i].kind() == Kind::side_effect)
        told.emplace_back(run.trace[i].text(Field::name));
    }
    Names expected = {"forward", "forward"};
    if (protocol != "none") expected.insert(expected.end(), {"replay", "replay"});
    CHECK(told == expected);
  }
}
