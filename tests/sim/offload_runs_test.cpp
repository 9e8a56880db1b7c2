#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/offload_stage.hpp"

// Offload groups under other protocols, in all that a training loop does, and at their edges.

namespace remat {

TEST_CASE("P11 goes with every protocol", "[sim][offload]") {
  // The middle op is kept, excluded or saved, as the protocol has it.
  const auto layer_with = [](const std::string& middle) {
    return [middle](const std::string& in, const std::string& out) {
      std::string body = op("sin", {in}, {"a" + out}) + ",";
      const std::string gelu = op("gelu", {"a" + out}, {"b" + out});
      if (middle.empty()) {
        body += gelu;
      } else {
        body += "{" + middle + R"(,"body":[)" + gelu + R"(]},{"needs_tensor":"b)" + out + "\"}";
      }
      return checkpoint("l" + out, body + "," + op("tanh", {"b" + out}, {out}));
    };
  };
  const std::string on = R"("offload":true)";
  struct Row {
    std::string protocol;
    std::string options;
    std::string middle;
    std::int64_t sent;  // tensors of the first three layers, that of x excepted
  };
  const std::vector<Row> rows = {
      {"torch", on, "", 2},
      {"torch-reentrant", on, "", 2},
      {"torch-sac", on + R"(,"keep":["gelu"])", "", 5},
      // Kept beside h: the excluded op's saved input, and its output.
      {"exclude", on, R"("exclude":"w")", 8},
      {"exclude-rederive", on, R"("exclude":"w")", 5},
      {"remat", on, R"("region":"w","recompute":false)", 5},
      {"kept-ops", on + R"(,"units":{"u":{"ops":["gelu"]}},"select":true)", "", 5}};
  for (const Row& row : rows) {
    CAPTURE(row.protocol);
    const std::string stage = layers(layer_with(row.middle));
    const ScenarioRun run = run_stage(stage, row.protocol, row.options);
    require_sound(run);
    CHECK(host(run).sent == row.sent * tensor_bytes);
    CHECK(host(run).returned == host(run).sent);
  }
}

TEST_CASE("P11: micro-batches and steps have their own copies", "[sim][offload]") {
  const std::string stage = layers(checkpointed_layer);
  const ScenarioRun run = run_stage(stage, "torch", R"("offload":true)",
                                    R"({"microbatches":3,"backward":"full"})", "{}", "2");
  require_sound(run);
  CHECK(n_copies(run, "d2h begin") == 12);  // two layers, three micro-batches, two steps
  CHECK(n_copies(run, "h2d end") == 12);
  CHECK(host(run).peak == 6 * tensor_bytes);  // all forwards come first
}

TEST_CASE("P11: what dx brought back dw finds on the device", "[sim][offload]") {
  const ScenarioRun run = run_stage(layers(plain_layer), "offload", "", R"({"backward":"split"})");
  require_sound(run);
  CHECK(n_copies(run, "h2d begin") == n_copies(run, "d2h begin"));
}

TEST_CASE("P11: a graph that nobody needs takes its copies along", "[sim][offload]") {
  const ScenarioRun run =
      run_stage(layers(plain_layer), "offload", "",
                R"({"microbatches":2,"actions":["F0.0","F0.1","B0.1"]})", "{}", "2");
  require_sound(run);
}

TEST_CASE("P11: a layer that backward passes by is not waited for by the one before it",
          "[sim][offload]") {
  // Both g0 and g1 save h1; only the path through w0 in g0 is asked for.
  const std::string stage =
      op("sin", {"x"}, {"h1"}) + "," + group("g0", op("mm", {"h1", "w0"}, {"u"})) + "," +
      group("g1", op("sin", {"h1"}, {"v"})) + "," + group("g2", op("sin", {"v"}, {"t"})) + "," +
      op("add", {"u", "t"}, {"s"}) + "," + loss_of("s");
  const ScenarioRun run =
      run_stage(stage, "offload", "", R"({"actions":["F0.0",{"action":"B0.0","wrt":["w0"]}]})");
  require_sound(run);
  CHECK(n_copies(run, "d2h begin") > 0);
}

TEST_CASE("P11: a tensor goes where the last group that keeps something on it says",
          "[sim][offload]") {
  const auto stage = [](const std::string& reads) {
    return group("g0", op("exp", {"x"}, {"h1"}), "disk") + "," +
           group("g1", op("sin", {"x"}, {"h2"}) + "," + op(reads, {"h1", "h2"}, {"h3"})) + "," +
           group("g2", op("sin", {"h3"}, {"h4"})) + "," + loss_of("h4");
  };
  const ScenarioRun read = run_stage(stage("add"), "offload");  // which saves nothing
  require_sound(read);
  CHECK(disk(read).sent == tensor_bytes);
  CHECK(host(read).sent == 0);
  const ScenarioRun saved = run_stage(stage("mul"), "offload");  // which saves h1 and h2
  require_sound(saved);
  CHECK(disk(saved).sent == 0);
  CHECK(host(saved).sent == 2 * tensor_bytes);
}

TEST_CASE("P11: a tensor that only dead nodes had saved may be written, and is not sent for them",
          "[sim][offload]") {
  const ScenarioRun run =
      run_stage(group("g0", op("sin", {"x"}, {"h1"})) + "," +
                    group("g1", op("sin", {"h1"}, {"u"}) + R"(,{"in_place":"scale","in":["h1"]},)" +
                                    op("sin", {"h1"}, {"h2"})) +
                    "," + group("g2", op("sin", {"h2"}, {"h3"})) + "," + loss_of("h3"),
                "offload");
  require_sound(run);
  CHECK(host(run).sent == tensor_bytes);
}

TEST_CASE("P11: a written tensor is told with the group that keeps it", "[sim][offload]") {
  const std::string writes = R"({"in_place":"scale","in":["h1"]},)";
  const ScenarioRun run =
      run_stage(group("g0", op("exp", {"x"}, {"h1"})) + "," +
                    group("g1", writes + op("add", {"h1", "x"}, {"h2"})) + "," +
                    group("g2", op("sin", {"h2"}, {"h3"})) + "," + loss_of("h3"),
                "offload");
  REQUIRE(run.code() == "E-MUTATED");
  CHECK(run.result.error->message.find("'h1' of offload group g0") != std::string::npos);
}

TEST_CASE("P11: a copy whose storage dies is given up", "[sim][offload]") {
  // u has the only node that saves h1, and dies in g1.
  const ScenarioRun run =
      run_stage(group("g0", op("sin", {"x"}, {"h1"}) + "," + op("sin", {"h1"}, {"u"})) + "," +
                    group("g1", R"({"no_grad":[)" + op("sin", {"u"}, {"c"}) + "]}," +
                                    op("exp", {"x"}, {"h2"})) +
                    "," + group("g2", op("exp", {"h2"}, {"h3"})) + "," + loss_of("h3"),
                "offload");
  require_sound(run);
  CHECK(copies(run) == std::vector<std::string>{"d2h begin 0", "d2h end 0"});
  CHECK(host(run) == LevelBytes());
}

TEST_CASE("P11: nobody waits for a copy that nothing asks for", "[sim][offload]") {
  const std::string stage = group("g0", op("exp", {"x"}, {"h1"})) + "," +
                            group("g1", op("exp", {"h1"}, {"h2"})) + "," +
                            group("g2", op("mm", {"h2", "w3"}, {"h3"})) + "," + loss_of("h3");
  const auto waited = [&](const std::string& actions) {
    Scenario scenario =
        *run_stage(stage, "offload", "", R"({"actions":[)" + actions + "]}").scenario;
    scenario.rank.links[0].latency = {1'000'000};
    return run_scenario(std::move(scenario)).result.copies_waited;
  };
  // w3's gradient needs h2 alone, which the last group keeps.
  CHECK(waited(R"("F0.0",{"action":"B0.0","wrt":["w3"]})") == waited(R"("F0.0")"));
}

TEST_CASE("P11: names of events are used again step by step", "[sim][offload]") {
  const auto n_names = [](const std::string& protocol, const std::string& steps) {
    return run_stage(layers(plain_layer), protocol, "", "{}", "{}", steps).trace.names().size();
  };
  // Slots have a name each.
  CHECK(n_names("offload", "50") - n_names("offload", "5") ==
        n_names("none", "50") - n_names("none", "5"));
}

TEST_CASE("H14: a replay ahead of the reload reads what is on the host", "[sim][offload]") {
  const std::string stage = layers(checkpointed_layer);
  const ScenarioRun sound = run_stage(stage, "torch", R"("offload":true)");
  Scenario scenario = *sound.scenario;
  for (Statement& statement : scenario.program.forwards.front().statements)
    if (auto* region = std::get_if<RegionBegin>(&statement)) region->knows_sessions = true;
  // Behind the forward, the second layer's region is replayed for a session.
  const PhaseStep open{.kind = PhaseStep::Kind::session_open, .session = "s"};
  const PhaseStep fire{.kind = PhaseStep::Kind::prefire, .microbatch = 0, .frames = {1}};
  scenario.order.insert(scenario.order.begin() + 2, {open, fire});
  const ScenarioRun run = run_scenario(std::move(scenario));
  CHECK(run.code() == "E-SWAP-STATE");
  CHECK(run.result.error->message.find("reads 'h1', which is in 'host' state, must be 'device'") !=
        std::string::npos);
  CHECK(run.broken() == std::vector<std::string>{"offload_lifecycle"});
}

}  // namespace remat
