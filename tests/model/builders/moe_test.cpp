#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "tests/model/builders/built_program.hpp"

namespace remat {
namespace {

struct Sizes {
  std::int64_t layers = 2;
  std::int64_t tokens = 16;
  std::int64_t h = 32;
  std::int64_t f = 64;
  std::int64_t experts = 8;
  std::int64_t top_k = 2;
};

Json moe(const Sizes& n) {
  return {{"builder", "moe"},     {"layers", n.layers}, {"hidden", n.h},       {"ffn", n.f},
          {"experts", n.experts}, {"top_k", n.top_k},   {"sequence", n.tokens}};
}

/// A layer's input, and what the experts' products save and give: up, its activation, down. What
/// dispatch gives them a replay brings again, or nobody does.
std::int64_t kept_of(const Sizes& n, std::int64_t rows, bool rederives) {
  const std::int64_t dispatched = rederives ? 0 : rows * n.h;
  return bf16_bytes * n.layers * (n.tokens * n.h + 2 * rows * n.f + rows * n.h + dispatched);
}

const Json dsa = {{"dsa", true}, {"heads", 4}, {"selected", 6}};

}  // namespace

TEST_CASE("a mixture of experts keeps what its products save, the dispatch not",
          "[model][builders]") {
  const Sizes n;
  const std::int64_t rows = n.tokens * n.top_k;
  CHECK(kept_bytes(moe(n), "torch") == bf16_bytes * n.layers * n.tokens * n.h);
  CHECK(kept_bytes(moe(n), "exclude") == kept_of(n, rows, false));
  CHECK(kept_bytes(moe(n), "exclude-rederive") == kept_of(n, rows, true));
  // A capacity of five tokens an expert, filled or not.
  CHECK(kept_bytes(changed(moe(n), {{"capacity", 5}}), "exclude-rederive") ==
        kept_of(n, n.experts * 5, true));
  CHECK(kept_bytes(changed(moe(n), {{"batch", 3}}), "exclude-rederive") ==
        3 * kept_of(n, rows, true));
}

TEST_CASE("a mixture of experts of any size keeps what it should", "[model][builders]") {
  rc::prop("and has the plain run's gradients", [] {
    Sizes n;
    n.layers = *rc::gen::inRange<std::int64_t>(1, 4);
    n.tokens = *rc::gen::inRange<std::int64_t>(1, 50);
    n.h = *rc::gen::inRange<std::int64_t>(1, 50);
    n.f = *rc::gen::inRange<std::int64_t>(1, 50);
    n.experts = *rc::gen::inRange<std::int64_t>(1, 10);
    n.top_k = *rc::gen::inRange<std::int64_t>(1, n.experts + 1);
    const ScenarioRun run = run_program(moe(n), "exclude-rederive");
    RC_ASSERT(run.verdict.holds());
    RC_ASSERT(run.result.gradients_match == true);
    RC_ASSERT(run.result.resident_bytes - bf16_bytes == kept_of(n, n.tokens * n.top_k, true));
  });
}

TEST_CASE("a replay dispatches again and leaves the experts' products out", "[model][builders]") {
  const Sizes n;
  for (const std::string protocol : {"exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_program(moe(n), protocol);
    CHECK(run.ops("grouped_matmul", Phase::replay) == 0);
    CHECK(run.ops("index_select", Phase::replay) == n.layers);
    CHECK(run.count("skip layer0.products#0") == 1);
  }
}

TEST_CASE("sparse attention chooses its keys once, in forward", "[model][builders]") {
  const Sizes n;
  const Json program = changed(moe(n), dsa);
  for (const std::string protocol : {"exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_program(program, protocol);
    CHECK(run.code() == "none");
    CHECK(run.broken().empty());
    CHECK(run.result.gradients_match == true);
    // The indexer's choice and the router's; a replay runs the router's again, and gathers the keys
    // that forward chose.
    CHECK(run.ops("topk", Phase::forward) == 2 * n.layers);
    CHECK(run.ops("topk", Phase::replay) == n.layers);
    CHECK(run.count("skip layer0.select#0") == 1);
    CHECK(run.count("skip layer1.select#0") == 1);
    CHECK(run.ops("gather", Phase::replay) == 2 * n.layers);
    // All that it costs is the indices that it chose, 8 bytes each.
    CHECK(run.result.resident_bytes - bf16_bytes ==
          kept_of(n, n.tokens * n.top_k, protocol == "exclude-rederive") +
              8 * n.layers * n.tokens * 6);
  }
  // Without excluded regions every replay chooses again.
  CHECK(run_program(program, "torch").ops("topk", Phase::replay) == 2 * n.layers);
}

}  // namespace remat
