#include <catch2/catch.hpp>

#include "tests/sim/scenario_file.hpp"
#include "tests/traces/trace_difference.hpp"

// What each border between saved and recomputed code keeps: R, T and peak of protocols.md P3 to P6
// worked out by hand, and what the mission's document wants accepted.

using namespace remat;

namespace {

/// Bytes of a bf16 tensor.
constexpr std::int64_t bytes_of(std::int64_t rows, std::int64_t columns) {
  return rows * columns * 2;
}
constexpr std::int64_t loss_bytes = 2;
constexpr std::int64_t tensor_bytes = bytes_of(4096, 1024);  // of the border scenarios: 8 MiB
constexpr std::int64_t weight_bytes = bytes_of(1024, 1024);
constexpr std::int64_t layer_bytes = bytes_of(16384, 2048);  // of the 20 layers: 64 MiB

/// Both protocols' runs of a scenario, sound.
struct BothRuns {
  ScenarioRun kept;  // exclude
  ScenarioRun rederived;
};
BothRuns both_of(const std::string& name) {
  BothRuns runs{run_file(name, {under("exclude")}), run_file(name)};
  const ScenarioRun plain = run_file(name, {under("none")});
  require_sound(runs.kept, plain);
  require_sound(runs.rederived, plain);
  return runs;
}

}  // namespace

TEST_CASE("RECOMPUTE to SAVE: the border's tensor is not kept", "[sim][borders]") {
  const BothRuns runs = both_of("border_recompute_to_save");
  // R: h and y; y alone.
  CHECK(runs.kept.result.resident_bytes == 2 * tensor_bytes + loss_bytes);
  CHECK(runs.rederived.result.resident_bytes == tensor_bytes + loss_bytes);
  // T: h, which stays in the slot until the GEMM's backward is over.
  CHECK(runs.kept.result.rederived_bytes == 0);
  CHECK(runs.rederived.result.rederived_bytes == tensor_bytes);
  CHECK(runs.rederived.result.replay_peak_bytes == tensor_bytes);
  // The peak comes in the GEMM's backward: h, the gradients of y and of h, that of w.
  CHECK(runs.rederived.result.at_peak.total == 3 * tensor_bytes + weight_bytes + loss_bytes);
  CHECK(runs.rederived.ops("rmsnorm", Phase::replay) == 1);
  CHECK(runs.rederived.ops("matmul", Phase::replay) == 0);
}

TEST_CASE("SAVE to RECOMPUTE: the kept output is all that a replay needs", "[sim][borders]") {
  const BothRuns runs = both_of("border_save_to_recompute");
  for (const ScenarioRun* run : {&runs.kept, &runs.rederived}) {
    CHECK(run->result.resident_bytes == tensor_bytes + loss_bytes);
    CHECK(resident(*run, OwnerClass::excl_output) == tensor_bytes);
    CHECK(run->result.rederived_bytes == 0);  // the region's input x is counted nowhere
    CHECK(run->ops("matmul", Phase::forward) == 1);
    CHECK(run->ops("matmul", Phase::replay) == 0);
  }
}

TEST_CASE("SAVE to SAVE: a chain owns its last output alone", "[sim][borders]") {
  for (const std::int64_t n : {2, 3, 4}) {
    CAPTURE(n);
    const std::string name = "border_save_to_save_" + std::to_string(n);
    const BothRuns runs = both_of(name);
    const ScenarioRun all_kept = run_file(name, {{R"("save_output": false, )", ""}});
    require_sound(all_kept, run_file(name, {under("none")}));
    // No region of the chain saves what it was handed: n outputs, or the last; h beside them.
    CHECK(runs.kept.result.resident_bytes == (n + 1) * tensor_bytes + loss_bytes);
    CHECK(all_kept.result.resident_bytes == n * tensor_bytes + loss_bytes);
    CHECK(runs.rederived.result.resident_bytes == tensor_bytes + loss_bytes);
    CHECK(resident(runs.rederived, OwnerClass::excl_output) == tensor_bytes);
    // The first region's boundary is the last outer save: early stop spares the rest of the chain.
    CHECK(runs.rederived.kinds(Kind::placeholder) == 1);
    const ScenarioRun to_the_end = run_file(name, {with(R"("early_stop": false)")});
    require_sound(to_the_end, run_file(name, {under("none")}));
    CHECK(to_the_end.kinds(Kind::placeholder) == n - 1);
    CHECK(runs.rederived.result.rederived_bytes == tensor_bytes);
    // Only the first region has a slot, so only it has a boundary.
    CHECK(boundaries_of(runs.rederived, "forward") ==
          std::map<std::string, std::int64_t>{{"gemm", 1}});
    for (const char* op : {"matmul", "add"})
      CHECK(runs.rederived.ops(op, Phase::replay) == 0);
  }
}

TEST_CASE("SAVE to SAVE: plain code may not read what nobody keeps", "[sim][borders]") {
  const ScenarioRun run = run_file(
      "border_save_to_save_2",
      {{R"({"exclude": "bias", "in": ["o1", "b"], "body": [)", R"({"unit": "u", "body": [)"}});
  CHECK(run.code() == "E-PLACEHOLDER");
  CHECK(run.result.error->message ==
        "add reads the placeholder of wrapper gemm#0 in block#0 (micro-batch 0, forward) output "
        "0; set save_output or mark the consumer");
}

TEST_CASE("torch's checkpoint keeps less at the borders and runs more", "[sim][borders]") {
  // Each border's time under torch, and under its own protocol: docs/boundaries.md has them.
  const auto time_of = [](const ScenarioRun& run) { return run.result.end.ns; };
  const ScenarioRun norm = run_file("border_recompute_to_save", {under("torch")});
  CHECK(norm.result.resident_bytes == loss_bytes);
  CHECK(norm.ops("rmsnorm", Phase::replay) == 1);
  CHECK(norm.ops("matmul", Phase::replay) == 0);  // nothing is saved behind it
  CHECK(time_of(run_file("border_recompute_to_save", {under("exclude")})) == 222'138);
  CHECK(time_of(run_file("border_recompute_to_save")) == 238'918);

  const ScenarioRun gemm = run_file("border_save_to_recompute", {under("torch")});
  CHECK(gemm.result.resident_bytes == loss_bytes);
  CHECK(gemm.ops("matmul", Phase::replay) == 1);
  CHECK(time_of(gemm) == 308'038);
  CHECK(time_of(run_file("border_save_to_recompute")) == 222'138);

  for (const char* n : {"2", "3", "4"}) {
    const ScenarioRun chain = run_file(std::string("border_save_to_save_") + n, {under("torch")});
    CHECK(chain.result.resident_bytes == loss_bytes);
    CHECK(chain.ops("rmsnorm", Phase::replay) == 1);
  }
  const ScenarioRun layers = run_file("rmsnorm_matmul_20_layers", {under("torch")});
  CHECK(layers.result.resident_bytes == 19 * layer_bytes + loss_bytes);
  CHECK(layers.result.at_peak.total == 1416 * (std::int64_t{1} << 20U) + loss_bytes);
  CHECK(layers.ops("rmsnorm", Phase::replay) == 20);
}

TEST_CASE("20 layers of RMSNorm and GEMM keep 20 tensors of 64 MiB less", "[sim][borders]") {
  const BothRuns runs = both_of("rmsnorm_matmul_20_layers");
  CHECK(layer_bytes == 67'108'864);
  CHECK(runs.kept.result.resident_bytes - runs.rederived.result.resident_bytes == 20 * layer_bytes);
  // What is left are the layers' outputs; each but the last is the next one's input.
  CHECK(runs.rederived.result.resident_bytes == 20 * layer_bytes + loss_bytes);
  CHECK(resident(runs.rederived, OwnerClass::region_input) == 19 * layer_bytes);
  CHECK(resident(runs.rederived, OwnerClass::excl_output) == layer_bytes);
  CHECK(resident(runs.kept, OwnerClass::excl_saved) == 20 * layer_bytes);
  for (const ScenarioRun* run : {&runs.kept, &runs.rederived}) {
    CHECK(run->ops("matmul", Phase::forward) == 20);
    CHECK(run->ops("matmul", Phase::replay) == 0);
  }
  CHECK(runs.rederived.ops("rmsnorm", Phase::replay) == 20);
  CHECK(runs.kept.ops("rmsnorm", Phase::replay) == 0);  // each replay ends before its norm runs
  CHECK(runs.rederived.result.replay_peak_bytes == layer_bytes);  // one layer's, not 20
  CHECK(runs.rederived.result.rederived_bytes == layer_bytes);
  // At the peak the last layer's backward runs: 19 inputs, h, the gradients of its output and of h,
  // and that of w.
  const std::int64_t weight = bytes_of(2048, 2048);
  CHECK(runs.rederived.result.at_peak.total == 22 * layer_bytes + weight + loss_bytes);
  // Where h is kept no boundary starts the replay early: the last output is still there, and 20 h.
  CHECK(runs.kept.result.at_peak.total == 42 * layer_bytes + weight + loss_bytes);
}

TEST_CASE("the gain of rederivation is the bytes of the inputs that nobody else keeps (I-32)",
          "[sim][borders]") {
  const std::pair<std::string, std::int64_t> gains[] = {
      {"verification_01_rmsnorm_gemm", bytes_of(128, 64)},           // h
      {"verification_02_bare_consumer", bytes_of(128, 64)},          // h
      {"verification_03_inner_tensors", bytes_of(128, 64)},          // h, not its copy
      {"verification_04_inputs_and_outputs", 4 * bytes_of(64, 32)},  // q, k, v, m
      {"verification_05_fallbacks", bytes_of(64, 32)},               // h alone
      {"verification_07_boundaries", bytes_of(64, 32)},              // h, five times
      {"verification_08_repeated_calls",
       8 * bytes_of(64, 32)},                      // 2 calls, 2 frames, 2 micro-batches
      {"verification_10_moe", bytes_of(512, 64)},  // tokens
      {"border_recompute_to_save", tensor_bytes},
      {"border_save_to_recompute", 0},
      {"rmsnorm_matmul_20_layers", 20 * layer_bytes}};
  for (const auto& [name, gain] : gains) {
    CAPTURE(name);
    const BothRuns runs = both_of(name);
    CHECK(runs.kept.result.resident_bytes - runs.rederived.result.resident_bytes == gain);
  }
}

TEST_CASE("an input that the checkpoint keeps itself is rederived without a gain (I-32)",
          "[sim][borders]") {
  const std::string stage =
      op("tanh", {"x"}, {"h"}) + "," +
      checkpoint("u", R"({"exclude":"square","in":["h"],"out":"y","body":[)" +
                          op("mul", {"h", "h"}, {"y"}) + "]}," + op("sin", {"y"}, {"z"})) +
      "," + loss_of("z");
  const ScenarioRun kept = run_stage(stage, "exclude");
  const ScenarioRun rederived = run_stage(stage, "exclude-rederive");
  require_sound(kept, run_stage(stage, "none"));
  require_sound(rederived, run_stage(stage, "none"));
  CHECK(rederived_paths(rederived) == std::vector<std::string>{"square arg0", "square arg0"});
  CHECK(kept.result.resident_bytes == rederived.result.resident_bytes);
}

TEST_CASE("without an input that a replay could bring, rederivation changes no event (I-50)",
          "[sim][borders]") {
  // tanh saves its own output: then no region of the scenario has an eligible input.
  const std::vector<TextEdit> none_eligible = {{R"("op": "gelu")", R"("op": "tanh")"}};
  const auto run_under = [&](const std::vector<TextEdit>& edits) {
    Scenario scenario =
        parse_scenario("i50.json", scenario_text("verification_05_fallbacks", edits));
    scenario.config_json = "{}";  // the header names the protocol
    return run_scenario(std::move(scenario));
  };
  const ScenarioRun kept = run_under({none_eligible[0], under("exclude")});
  const ScenarioRun rederived = run_under(none_eligible);
  require_sound(kept, run_file("verification_05_fallbacks", {none_eligible[0], under("none")}));
  CHECK(rederived_paths(rederived).empty());
  CHECK(kept.trace.size() > 100);
  CHECK(first_difference(kept.trace, rederived.trace) == std::nullopt);
  // With one eligible input they part.
  CHECK(first_difference(run_under({under("exclude")}).trace, run_under({}).trace).has_value());
}
