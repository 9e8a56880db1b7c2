#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "sim/rank.hpp"
#include "sim/scenario.hpp"

namespace remat {
namespace {

const std::string two_microbatches = R"({"format":"rematsim-scenario","version":1,"program":{
  "loss":"loss","inputs":{"x":{"shape":[4],"requires_grad":true}},"params":{"w":{"shape":[4]}},
  "stages":[[{"op":"mul","in":["x","w"],"out":["h"]},
             {"checkpoint":"u","body":[{"op":"tanh","in":["h"],"out":["y"]}]},
             {"op":"sum","in":["y"],"out":["loss"]}]]},
  "protocol":{"name":"torch"},"schedule":{"microbatches":2}})";

bool writes(const std::vector<Touch>& touches) {
  return std::any_of(touches.begin(), touches.end(),
                     [](const Touch& touch) { return touch.is_write; });
}

}  // namespace

TEST_CASE("a backward touches the slots of its own micro-batch, and no other's", "[sim]") {
  const Scenario scenario = parse_scenario("t", two_microbatches);
  const auto protocol = make_protocol(scenario.protocol, scenario.options);
  EventLog log(nullptr, scenario.program);
  Rank rank(scenario.program, *protocol, scenario.rank, log);
  rank.set_up();
  for (const std::int64_t microbatch : {0, 1})
    REQUIRE(rank.run_forward(0, microbatch) == Flow::done);
  Footprint first;
  Footprint second;
  rank.footprint({.kind = PhaseStep::Kind::backward, .microbatch = 0}, first);
  rank.footprint({.kind = PhaseStep::Kind::backward, .microbatch = 1}, second);
  REQUIRE(first.slots.size() == 1);
  REQUIRE(second.slots.size() == 1);
  CHECK(first.slots[0].number != second.slots[0].number);
  CHECK(writes(first.storages));
  // Both add to the same gradients, so they may not trade places.
  CHECK_FALSE(first.is_independent_of(second));
}

TEST_CASE("an update writes the parameters, a forward reads them", "[sim]") {
  const Scenario scenario = parse_scenario("t", two_microbatches);
  const auto protocol = make_protocol(scenario.protocol, scenario.options);
  EventLog log(nullptr, scenario.program);
  Rank rank(scenario.program, *protocol, scenario.rank, log);
  rank.set_up();
  Footprint update;
  Footprint forward;
  rank.footprint({.kind = PhaseStep::Kind::update}, update);
  rank.footprint({.kind = PhaseStep::Kind::forward, .microbatch = 0}, forward);
  CHECK(writes(update.storages));
  CHECK_FALSE(writes(forward.storages));
}

}  // namespace remat
