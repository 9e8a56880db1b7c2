#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/model/builders/built_program.hpp"

// Figures of models that are often told wrong (docs/survey-figures.md).

namespace remat {
namespace {

/// One layer of GPT-3's sizes at a sequence of 4096.
const Json gpt3 = {{"builder", "transformer"},
                   {"layers", 1},
                   {"hidden", 12288},
                   {"heads", 96},
                   {"sequence", 4096}};

constexpr std::int64_t layers = 96;
constexpr double gigabyte = 1e9;
constexpr double terabyte = 1e12;

double gigabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / gigabyte;
}

const Json small = {
    {"builder", "transformer"}, {"layers", 2},          {"hidden", 32}, {"heads", 4},
    {"sequence", 16},           {"checkpoint", "layer"}};

std::int64_t parameters_of(const Program& program) {
  std::int64_t n = 0;
  for (const ValueId parameter : program.parameters)
    n += element_count(program.values[parameter].layout.shape);
  return n;
}

/// Values that regions were given, by micro-batch.
std::map<std::int64_t, std::set<std::string>> region_inputs(const ScenarioRun& run) {
  std::map<std::int64_t, std::set<std::string>> values;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::pack || event.text(Field::role) != "unit_input") continue;
    values[*event.integer(Field::microbatch)].insert(
        std::string(event.tensor(Field::tensor)->value));
  }
  return values;
}

std::int64_t bytes_of_value(const Program& program, const std::string& name) {
  for (std::uint32_t i = 0; i < program.values.size(); ++i) {
    const ProgramValue& value = program.values[ValueId(i)];
    if (value.name == name) return element_bytes_of(value.layout);
  }
  return 0;
}

}  // namespace

TEST_CASE("E15: a layer's bytes have a term that is quadratic in the sequence", "[survey]") {
  const std::int64_t sbh = std::int64_t{4096} * 12288;
  const std::int64_t layer = kept_bytes(gpt3);
  CHECK(layer == (34 + 160) * sbh);
  CHECK(gigabytes(layer) == Approx(9.76).margin(0.005));
  CHECK(gigabytes(layers * layer) == Approx(937).margin(0.5));
  const std::int64_t without_scores =
      kept_bytes(changed(gpt3, {{"attention", "recomputed"}}), "torch");
  CHECK(gigabytes(layers * without_scores) == Approx(164).margin(0.5));
  const std::int64_t boundary = kept_bytes(changed(gpt3, {{"checkpoint", "layer"}}), "torch");
  CHECK(gigabytes(layers * boundary) == Approx(9.66).margin(0.005));
}

TEST_CASE("E17: what is kept of a step is its input; its output belongs to who reads it",
          "[survey]") {
  const Json step = {
      {"builder", "chain"}, {"steps", {{{"bytes", 1000}}}}, {"checkpoint", "each"}, {"bytes", 1}};
  const std::int64_t loss = 1;
  for (const std::string protocol : {"none", "torch", "torch-reentrant"})
    CHECK(run_program(step, protocol).result.resident_bytes == 1000 + loss);
}

TEST_CASE("E18: dropout draws the same in a replay; what counts batches counts twice", "[survey]") {
  for (const std::string protocol : {"torch", "torch-reentrant"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_program(small, protocol);
    CHECK(run.ops("dropout", Phase::replay) > 0);
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
    const std::string counter = R"({"side_effect":"running_mean"},)";
    const ScenarioRun counted = run_stage(
        checkpoint("norm", counter + op("sin", {"x"}, {"y"})) + "," + loss_of("y"), protocol);
    CHECK(counted.kinds(Kind::side_effect) == 2);
  }
}

TEST_CASE("E19: parameters, gradients and Adam's state of GPT-3 take 2.8 TB whatever the batch",
          "[survey]") {
  const auto states = [](std::int64_t batch) {
    const std::string text = text_of(changed(gpt3, {{"layers", layers}, {"batch", batch}}));
    const std::int64_t parameters = parameters_of(parse_scenario("s.json", text).program);
    constexpr std::int64_t embedding = std::int64_t{50257 + 2048} * 12288;
    // bf16 parameter and gradient; f32 parameter and two moments.
    return (parameters + embedding) * (2 + 2 + 4 + 4 + 4);
  };
  CHECK(static_cast<double>(states(1)) / terabyte == Approx(2.8).margin(0.01));
  CHECK(states(32) == states(1));
}

TEST_CASE("E20: no two micro-batches have a checkpoint in common", "[survey]") {
  const ScenarioRun run =
      run_text(text_of(small, {{"name", "torch"}}, {{"schedule", {{"microbatches", 2}}}}));
  const auto inputs = region_inputs(run);
  REQUIRE(inputs.size() == 2);
  CHECK(inputs.at(0).size() == 2);
  CHECK(inputs.at(1).size() == 2);
  for (const std::string& value : inputs.at(0))
    CHECK(inputs.at(1).count(value) == 0);
  CHECK(run.result.resident_by_forward.back() == 2 * run.result.resident_by_forward.front());
}

TEST_CASE("E21: the products whose parts ranks add up are replayed on every rank", "[survey]") {
  const Json shared = changed(small, {{"tensor_parallel", 2}, {"sequence_parallel", true}});
  const ScenarioRun run = run_text(text_of(shared, {{"name", "torch"}, {"early_stop", false}}));
  // Six a layer; the collectives go with four of them.
  CHECK(run.ops("matmul", Phase::replay) == 12);
  // An early stop leaves out what comes after the last save: the last product is before it.
  CHECK(run_program(shared, "torch").ops("matmul", Phase::replay) == 12);
}

TEST_CASE("E22: a layer's replay peaks above its first forward", "[survey]") {
  const auto peak = [](const Json& actions) {
    const Json one = changed(small, {{"layers", 1}});
    return run_text(text_of(one, {{"name", "torch"}}, {{"schedule", {{"actions", actions}}}}))
        .result.at_peak.total;
  };
  CHECK(peak({"F0.0", "B0.0"}) > peak(Json::array({"F0.0"})));
}

TEST_CASE("E24: a layer's boundary is at most a seventeenth of the layer", "[survey]") {
  for (const std::int64_t sequence : {1, 16, 256}) {
    CAPTURE(sequence);
    const Json layer = changed(small, {{"layers", 1}, {"sequence", sequence}});
    const std::int64_t full = kept_bytes(changed(layer, {{"checkpoint", "none"}}));
    const std::int64_t boundary = kept_bytes(layer, "torch");
    CHECK(boundary == 2 * sequence * 32);
    CHECK(full >= 17 * boundary);
  }
  // s layers kept and k checkpointed take s full layers and k boundaries, no k full ones.
  const Json chain = {{"builder", "chain"},       {"steps", 12},           {"bytes", 10},
                      {"checkpoint", "segments"}, {"segments", {5, 3, 4}}, {"keep_last", true}};
  CHECK(run_program(chain, "torch").result.resident_bytes == (2 + 4) * 10 + 1);
}

TEST_CASE("E27: a million tokens: stored scores take 192 TB a layer, boundaries 24.6 GB",
          "[survey]") {
  const std::string text = text_of(changed(gpt3, {{"sequence", 1'000'000}}));
  const std::int64_t scores =
      bytes_of_value(parse_scenario("s.json", text).program, "layer0.softmax");
  CHECK(static_cast<double>(scores) / terabyte == Approx(192));
  const Json boundaries = changed(gpt3, {{"sequence", 1'000'000}, {"checkpoint", "layer"}});
  const std::int64_t boundary = kept_bytes(boundaries, "torch");
  CHECK(gigabytes(boundary) == Approx(24.6).margin(0.05));
  CHECK(static_cast<double>(layers * boundary) / terabyte == Approx(2.36).margin(0.005));
  // One kernel keeps a number a row of scores: of the terabytes nothing is left.
  const std::int64_t flash = kept_bytes(changed(gpt3, {{"sequence", 1'000'000}, {"flash", true}}));
  CHECK(flash == std::int64_t{34} * 1'000'000 * 12288 + std::int64_t{4} * 96 * 1'000'000);
}

TEST_CASE("E28: shared out by sequence, a rank still keeps what grows with it", "[survey]") {
  const auto rank = [](std::int64_t sequence, std::int64_t ranks) {
    return kept_bytes(
        changed(small,
                {{"sequence", sequence}, {"tensor_parallel", ranks}, {"sequence_parallel", true}}),
        "torch");
  };
  CHECK(rank(64, 4) == rank(64, 1) / 4);
  CHECK(rank(128, 4) == 2 * rank(64, 4));
}

}  // namespace remat
