#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "tests/model/builders/built_program.hpp"

// Bytes are those of Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
// Transformer Models", equations 1 to 5: b sequences of s tokens, hidden size h, a heads, t ranks.

namespace remat {
namespace {

struct Sizes {
  std::int64_t layers = 1;
  std::int64_t b = 1;
  std::int64_t s = 1;
  std::int64_t h = 1;
  std::int64_t a = 1;
  std::int64_t t = 1;

  std::int64_t sbh() const { return s * b * h; }
  std::int64_t rows() const { return a * s * b; }        // of all heads' scores
  std::int64_t scores() const { return a * s * s * b; }  // elements of them
};

Json transformer(const Sizes& n) {
  return {{"builder", "transformer"}, {"layers", n.layers}, {"hidden", n.h},         {"heads", n.a},
          {"sequence", n.s},          {"batch", n.b},       {"tensor_parallel", n.t}};
}

std::int64_t plain(const Sizes& n) {
  return n.layers * (34 * n.sbh() + 5 * n.scores());
}
std::int64_t tensor_parallel(const Sizes& n) {
  return n.layers * (10 * n.sbh() + 24 * n.sbh() / n.t + 5 * n.scores() / n.t);
}
std::int64_t sequence_parallel(const Sizes& n) {
  return n.layers * (34 * n.sbh() / n.t + 5 * n.scores() / n.t);
}

/// All that the paper's table 2 has, for these sizes.
void check_all(const Sizes& n) {
  const Json model = transformer(n);
  const Json shares = changed(model, {{"sequence_parallel", true}});
  const Json recomputed = {{"attention", "recomputed"}};
  CHECK(kept_bytes(changed(model, {{"tensor_parallel", 1}})) == plain(n));
  CHECK(kept_bytes(model) == tensor_parallel(n));
  CHECK(kept_bytes(shares) == sequence_parallel(n));
  const std::int64_t core = n.layers * 5 * n.scores() / n.t;
  CHECK(kept_bytes(changed(model, recomputed), "torch") == tensor_parallel(n) - core);
  CHECK(kept_bytes(changed(shares, recomputed), "torch") == sequence_parallel(n) - core);
  const Json layer = {{"checkpoint", "layer"}};
  CHECK(kept_bytes(changed(model, layer), "torch") == n.layers * 2 * n.sbh());
  CHECK(kept_bytes(changed(shares, layer), "torch") == n.layers * 2 * n.sbh() / n.t);
}

const Sizes small = {.layers = 2, .b = 2, .s = 16, .h = 32, .a = 4, .t = 2};

}  // namespace

TEST_CASE("a transformer keeps what is published for models of that size", "[model][builders]") {
  for (const Sizes& n : {Sizes{.layers = 2, .b = 4, .s = 2048, .h = 6144, .a = 64, .t = 8},
                         Sizes{.layers = 2, .b = 1, .s = 2048, .h = 12288, .a = 96, .t = 8},
                         Sizes{.layers = 2, .b = 1, .s = 2048, .h = 20480, .a = 128, .t = 8},
                         Sizes{.layers = 2, .b = 1, .s = 2048, .h = 25600, .a = 160, .t = 8}}) {
    CAPTURE(n.h);
    check_all(n);
  }
  // The paper's own figures: 5as/h is 80 for GPT-3 and 64 for MT-NLG.
  CHECK(plain({.s = 2048, .h = 12288, .a = 96}) == 114 * std::int64_t{2048} * 12288);
  CHECK(plain({.s = 2048, .h = 20480, .a = 128}) == 98 * std::int64_t{2048} * 20480);
}

TEST_CASE("a transformer of any size keeps what the formula says", "[model][builders]") {
  rc::prop("in every form", [] {
    Sizes n;
    n.t = *rc::gen::inRange<std::int64_t>(1, 5);
    n.layers = *rc::gen::inRange<std::int64_t>(1, 4);
    n.b = *rc::gen::inRange<std::int64_t>(1, 5);
    n.s = n.t * *rc::gen::inRange<std::int64_t>(1, 20);
    n.a = n.t * *rc::gen::inRange<std::int64_t>(1, 5);
    n.h = n.a * *rc::gen::inRange<std::int64_t>(1, 20);
    check_all(n);
  });
}

TEST_CASE("what is kept goes to who keeps it, and every gradient is the plain run's",
          "[model][builders]") {
  const std::int64_t sbh = small.sbh() * small.layers;
  const std::int64_t scores = small.scores() * small.layers;
  const std::int64_t logsumexp = 4 * small.rows() * small.layers;  // f32
  const Json model = changed(transformer(small), {{"tensor_parallel", 1}});
  const Json kept = changed(model, {{"checkpoint", "layer"}, {"attention", "kept"}});
  const Json flash = {{"flash", true}};
  const Json whole = {{"checkpoint", "layer"}, {"attention", "recomputed"}};
  struct Row {
    Json program;
    std::string protocol;
    std::int64_t bytes;
  };
  const std::vector<Row> rows = {
      {model, "torch", 34 * sbh + 5 * scores},
      {changed(model, whole), "torch", 2 * sbh},
      {changed(model, whole), "torch-reentrant", 2 * sbh},
      // Without excluded regions a kept core is like any other code of the layer.
      {kept, "torch", 2 * sbh},
      {kept, "exclude", (2 + 6 + 2) * sbh + 5 * scores},
      {kept, "exclude-rederive", (2 + 2) * sbh + 5 * scores},
      {changed(model, flash), "none", 34 * sbh + logsumexp},
      {changed(kept, flash), "exclude", (2 + 6 + 2) * sbh + logsumexp},
      {changed(kept, flash), "exclude-rederive", (2 + 2) * sbh + logsumexp},
      {changed(model, {{"flash", true}, {"attention", "recomputed"}}), "torch", 34 * sbh},
      {changed(model, {{"dropout", false}}), "none", 32 * sbh + 2 * scores},
      {changed(model, {{"ffn", 3 * small.h}}), "none", (34 - 4) * sbh + 5 * scores},
      {changed(model, {{"dtype", "f16"}}), "none", 34 * sbh + 5 * scores},
  };
  for (const Row& row : rows) {
    CAPTURE(row.program.dump(), row.protocol);
    const ScenarioRun run = run_program(row.program, row.protocol);
    CHECK(run.code() == "none");
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
    CHECK(run.result.resident_bytes - bf16_bytes == row.bytes);
  }
}

TEST_CASE("in 32 bit all but the dropout masks takes twice as much", "[model][builders]") {
  const Json model = changed(transformer(small), {{"tensor_parallel", 1}, {"dtype", "f32"}});
  const std::int64_t loss = 4;
  CHECK(run_program(model).result.resident_bytes ==
        small.layers * ((2 * 32 + 2) * small.sbh() + (2 * 4 + 1) * small.scores()) + loss);
}

TEST_CASE("a kept attention runs once, a recomputed one twice", "[model][builders]") {
  const Json model = changed(transformer(small), {{"checkpoint", "layer"}, {"flash", true}});
  const auto replayed = [&](const std::string& attention) {
    return run_program(changed(model, {{"attention", attention}}), "exclude-rederive")
        .ops("attention", Phase::replay);
  };
  CHECK(replayed("kept") == 0);
  CHECK(replayed("stored") == small.layers);
  // In a region of its own in the layer's, the layer's replay runs it, and then its own.
  CHECK(replayed("recomputed") == 2 * small.layers);
}

TEST_CASE("a selective policy keeps a builder's ops by their kind", "[model][builders]") {
  const Json model = changed(transformer(small), {{"checkpoint", "layer"}, {"flash", true}});
  const Json policy = {{"name", "torch-sac"}, {"keep", {"attention"}}};
  const ScenarioRun run = run_text(text_of(model, policy));
  CHECK(run.broken().empty());
  CHECK(run.ops("attention", Phase::replay) == 0);
  // Of each layer its input, and both outputs of the kernel, of which a rank has half the heads.
  const std::int64_t kernel = (2 * small.sbh() + 4 * small.rows()) / small.t;
  CHECK(run.result.resident_bytes - bf16_bytes == small.layers * (2 * small.sbh() + kernel));
}

}  // namespace remat
