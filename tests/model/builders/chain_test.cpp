#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "tests/model/builders/built_program.hpp"

namespace remat {
namespace {

constexpr std::int64_t loss_bytes = 1;  // a chain's elements have one byte
constexpr std::int64_t unit = 100;      // of one step

Json chain(std::int64_t steps, std::int64_t bytes = 1) {
  return {{"builder", "chain"}, {"steps", steps}, {"bytes", bytes}};
}
Json cut(const Json& segments) {
  return {{"checkpoint", "segments"}, {"segments", segments}};
}

std::int64_t kept(const Json& program, const std::string& protocol) {
  return run_program(program, protocol).result.resident_bytes - loss_bytes;
}

}  // namespace

TEST_CASE("a chain keeps the input of every step, or of every segment", "[model][builders]") {
  CHECK(kept(chain(12, unit), "none") == 12 * unit);
  CHECK(kept(changed(chain(12, unit), {{"checkpoint", "each"}}), "torch") == 12 * unit);
  CHECK(kept(changed(chain(12, unit), cut(4)), "torch") == 4 * unit);
  CHECK(kept(changed(chain(12, unit), cut({5, 1, 6})), "torch") == 3 * unit);
  // The last segment's three steps are kept, and the inputs of three segments.
  const Json keeps_last = changed(changed(chain(12, unit), cut(4)), {{"keep_last", true}});
  CHECK(kept(keeps_last, "torch") == (3 + 3) * unit);
}

TEST_CASE("a chain's time is that of its steps", "[model][builders]") {
  const Json steps = Json::array({{{"bytes", 3}, {"cost_ns", 10}},
                                  {{"bytes", 5}, {"cost_ns", 20}, {"backward_ns", 1}},
                                  {{"bytes", 7}}});
  const Json program = {{"builder", "chain"}, {"steps", steps}, {"cost_ns", 4}};
  const ScenarioRun run = run_program(program);
  CHECK(run.result.end.ns == (10 + 20 + 4) + (20 + 1 + 8));
  CHECK(run.result.resident_bytes == 3 + 5 + 7 + loss_bytes);
  CHECK(run_program(chain(10)).result.end.ns == 10 + 20);
}

TEST_CASE("a segment's replay runs all its steps, but the last with early stop",
          "[model][builders]") {
  const auto replayed = [](bool early_stop) {
    return run_text(
               text_of(changed(chain(12), cut(4)), {{"name", "torch"}, {"early_stop", early_stop}}))
        .ops("sin", Phase::replay);
  };
  CHECK(replayed(true) == 12 - 4);
  CHECK(replayed(false) == 12);
}

TEST_CASE("a chain of any steps and segments has the plain run's gradients", "[model][builders]") {
  rc::prop("and keeps what its segments are given", [] {
    Json steps = Json::array();
    Json segments = Json::array();
    std::int64_t given = 0;
    const auto lengths = *rc::gen::nonEmpty(
        rc::gen::resize(6, rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 5))));
    for (const int length : lengths) {
      segments.push_back(length);
      for (int i = 0; i < length; ++i) {
        const auto bytes = *rc::gen::inRange<std::int64_t>(1, 1000);
        steps.push_back({{"bytes", bytes}});
        if (i == 0) given += bytes;
      }
    }
    const Json program = changed({{"builder", "chain"}, {"steps", steps}}, cut(segments));
    const ScenarioRun run = run_program(program, "torch");
    RC_ASSERT(run.verdict.holds());
    RC_ASSERT(run.result.gradients_match == true);
    RC_ASSERT(run.result.resident_bytes == given + loss_bytes);
  });
}

}  // namespace remat
