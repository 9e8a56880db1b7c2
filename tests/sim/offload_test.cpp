#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/offload_stage.hpp"

// Offload groups (protocols.md P11): what leaves the device, when, and when it is back.

namespace remat {

TEST_CASE("P11: what layers save waits on the host, that of the last layer on the device",
          "[sim][offload]") {
  const std::string stage = layers(plain_layer);
  const ScenarioRun kept = run_stage(stage, "none");
  const ScenarioRun sent = run_stage(stage, "offload");
  require_sound(sent);
  // A layer saves what it was given, `a` and what it made; x is the caller's, h1 to h3 belong to
  // two layers and stay as long as the later one has not run.
  CHECK(host(sent).peak ==
        5 * tensor_bytes);  // a and h of layers 1 and 2 (h1 and h2), a of layer 3
  CHECK(host(sent).sent == host(sent).peak);
  CHECK(host(sent).returned == host(sent).sent);
  CHECK(kept.result.resident_bytes - sent.result.resident_bytes == host(sent).peak);
  CHECK(sent.result.at_peak.total < kept.result.at_peak.total);
}

TEST_CASE("P11: without a word of offload its groups are code like any other", "[sim][offload]") {
  const ScenarioRun run = run_stage(layers(plain_layer), "none");
  require_sound(run);
  CHECK(copies(run).empty());
  CHECK(run.kinds(Kind::launch) == 0);
  const ScenarioRun off = run_stage(layers(plain_layer), "none", R"("offload":false)");
  CHECK(copies(off).empty());
}

TEST_CASE("P11: one layer alone has nothing to send", "[sim][offload]") {
  const ScenarioRun run =
      run_stage(group("g", plain_layer("x", "h")) + "," + loss_of("h"), "offload");
  require_sound(run);
  CHECK(copies(run).empty());
}

TEST_CASE("P11: copies begin behind a layer's forward and end before the next one's end",
          "[sim][offload]") {
  // One tensor a layer: what it was given.
  const auto layer = [](const std::string& in, const std::string& out) {
    return op("sin", {in}, {out});
  };
  const ScenarioRun run = run_stage(layers(layer), "offload");
  require_sound(run);
  // x stays, h1 and h2 go, h3 is the last layer's.
  CHECK(copies(run) == std::vector<std::string>{"d2h begin 0", "d2h begin 1", "d2h end 0",
                                                "d2h end 1", "h2d begin 1", "h2d begin 0",
                                                "h2d end 1", "h2d end 0"});
}

TEST_CASE("P11: copies take the link's time, and compute waits for them where it must",
          "[sim][offload]") {
  const std::string cost = R"("cost_ns":100)";
  std::string stage;
  for (int i = 0; i < 4; ++i) {
    const std::string in = i == 0 ? "x" : "h" + std::to_string(i);
    stage +=
        group("g" + std::to_string(i), op("sin", {in}, {"h" + std::to_string(i + 1)}, cost)) + ",";
  }
  stage += op("sum", {"h4"}, {"loss"}, R"("cost_ns":0)");
  const auto makespan = [&](const std::string& links) {
    std::string text =
        R"({"format":"rematsim-scenario","version":1,"program":{"loss":"loss","inputs":{"x":{)"
        R"("shape":[4,8],"requires_grad":true}},"stages":[[)" +
        stage + R"(]]},"protocol":{"name":"offload"},"machine":{"links":)" + links + "}}";
    const ScenarioRun run = run_text(text);
    require_sound(run);
    return std::pair(run.result.end.ns, run.result.copies_waited.ns);
  };
  CHECK(makespan("{}") == std::pair<std::int64_t, std::int64_t>{800, 0});
  // 128 bytes at a byte a nanosecond and 72 ns: 200 a copy. h1 leaves at 200 and is awaited at 300,
  // for 100; h2 leaves at 400 and is awaited at 500, for 100; each comes back in 200, while one
  // layer's backward of 100 runs.
  const std::string slow = R"({"host":{"bytes_per_second":1000000000,"latency_ns":72}})";
  CHECK(makespan(slow) == std::pair<std::int64_t, std::int64_t>{1200, 400});
  // As fast as the layers are slow: nobody waits.
  const std::string fast = R"({"host":{"bytes_per_second":2000000000,"latency_ns":36}})";
  CHECK(makespan(fast) == std::pair<std::int64_t, std::int64_t>{800, 0});
}

TEST_CASE("P11: each level has its own bytes and its own link", "[sim][offload]") {
  const std::string stage = group("g0", plain_layer("x", "h1"), "disk") + "," +
                            group("g1", plain_layer("h1", "h2")) + "," +
                            group("g2", plain_layer("h2", "h3")) + "," + loss_of("h3");
  const ScenarioRun run = run_stage(stage, "offload");
  require_sound(run);
  CHECK(disk(run).peak == tensor_bytes);      // a of the first layer
  CHECK(host(run).peak == 2 * tensor_bytes);  // h1 and a of the second
  std::vector<std::string> streams;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() == Kind::copy_begin)
      streams.emplace_back(run.trace[i].text(Field::stream));
  }
  CHECK(streams == std::vector<std::string>{"disk_out", "host_out", "host_out", "host_in",
                                            "host_in", "disk_in"});
}

TEST_CASE("P11: what a later layer or the caller reads stays on the device", "[sim][offload]") {
  // h1 is read behind the last layer.
  const ScenarioRun skip = run_stage(group("g0", op("sin", {"x"}, {"h1"})) + "," +
                                         group("g1", op("sin", {"h1"}, {"h2"})) + "," +
                                         group("g2", op("sin", {"h2"}, {"h3"})) + "," +
                                         op("add", {"h3", "h1"}, {"h4"}) + "," + loss_of("h4"),
                                     "offload");
  require_sound(skip);
  CHECK(copies(skip).empty());
  // The caller holds on to what it asks a backward of.
  const ScenarioRun root = run_stage(
      group("g0", op("sin", {"x"}, {"h1"}) + "," + op("sum", {"h1"}, {"loss"})) + "," +
          group("g1", op("exp", {"x"}, {"u"})) + "," + group("g2", op("exp", {"u"}, {"v"})),
      "offload");
  require_sound(root);
  CHECK(copies(root).empty());
}

TEST_CASE("P11: what reaches a region in a container is seen by no hook, and stays",
          "[sim][offload]") {
  const auto stage = [](const std::string& inputs) {
    return group("g0", op("sin", {"x"}, {"h1"})) + "," +
           group("g1", checkpoint("r", op("mul", {"h1", "h1"}, {"h2"}), inputs)) + "," +
           group("g2", op("sin", {"h2"}, {"h3"})) + "," + loss_of("h3");
  };
  const ScenarioRun open = run_stage(stage(R"("in":["h1"])"), "torch", R"("offload":true)");
  require_sound(open);
  CHECK(host(open).sent == tensor_bytes);
  const ScenarioRun hidden = run_stage(stage(R"("in":[])"), "torch", R"("offload":true)");
  require_sound(hidden);
  CHECK(copies(hidden).empty());
}

TEST_CASE("P11: a written tensor is not sent", "[sim][offload]") {
  const ScenarioRun run = run_stage(
      group("g0", op("sin", {"x"}, {"h1"})) + "," +
          group("g1", op("sin", {"h1"}, {"h2"}) + R"(,{"in_place":"scale","in":["h1"]})") + "," +
          group("g2", op("sin", {"h2"}, {"h3"})) + "," + loss_of("h3"),
      "offload");
  CHECK(run.code() == "E-MUTATED");
  CHECK(run.result.error->message.find("of offload group g1 has been modified by an inplace "
                                       "operation since it was saved, and cannot be offloaded") !=
        std::string::npos);
}

TEST_CASE("P11: under a checkpoint only regions' inputs are sent, and a replay sends nothing",
          "[sim][offload]") {
  const std::string stage = layers(checkpointed_layer);
  const ScenarioRun kept = run_stage(stage, "torch");
  const ScenarioRun sent = run_stage(stage, "torch", R"("offload":{"what":["region_inputs"]})");
  require_sound(sent);
  CHECK(host(sent).peak == 2 * tensor_bytes);  // h1 and h2; h3 is the last layer's
  CHECK(kept.result.resident_bytes - sent.result.resident_bytes == 2 * tensor_bytes);
  CHECK(n_copies(sent, "d2h begin") == 2);
  CHECK(sent.ops("gelu", Phase::replay) == kept.ops("gelu", Phase::replay));
  for (std::size_t i = 0; i < sent.trace.size(); ++i) {
    if (sent.trace[i].kind() == Kind::copy_begin) CHECK(sent.trace[i].phase() != Phase::replay);
  }
  const ScenarioRun none = run_stage(stage, "torch", R"("offload":{"what":["saved","cached"]})");
  require_sound(none);
  CHECK(copies(none).empty());
}

}  // namespace remat
