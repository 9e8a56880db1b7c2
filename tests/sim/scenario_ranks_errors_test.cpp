#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/scenario_writer.hpp"
#include "tests/sim/ranks_stage.hpp"
#include "tests/sim/wrong_scenario.hpp"

// What can be wrong in what a scenario says of ranks, and what is right of it written again.

namespace remat {
namespace {

const std::string opening =
    "{\"format\": \"rematsim-scenario\", \"version\": 1, \"ranks\": 2, \"groups\": {\"one\": "
    "[1]},\n"
    "\"program\": {\"inputs\": {\"x\": {\"shape\": [3, 2]}}, \"stages\": [[";

}  // namespace

TEST_CASE("a collective takes a tensor that the ranks can share, and a group they are in",
          "[sim][ranks]") {
  check(
      {
          {R"({"collective": "all_reduce", "in": ["x"]})",
           "2: a collective either makes a tensor or writes one; expected 'out' or 'into' (at "
           "/program/stages/0/0)"},
          {R"({"collective": "sin", "in": ["x"], "out": ["y"]})",
           "2: 'sin' is no collective; expected it under the key op, view, in_place or random (at "
           "/program/stages/0/0)"},
          {R"({"op": "all_reduce", "in": ["x"], "out": ["y"]})",
           "2: 'all_reduce' is a collective; expected it under the key collective (at "
           "/program/stages/0/0)"},
          {R"({"collective": "all_reduce", "in": ["x"], "out": ["y"], "group": "tp"})",
           "2: unknown group 'tp'; expected one of world, one (at /program/stages/0/0/group)"},
          {R"({"collective": "all_reduce", "in": ["x"], "out": ["y"], "group": "one"})",
           "2: rank 0 is no member of group 'one'; expected on_ranks around what others issue "
           "alone (at /program/stages/0/0)"},
          {R"({"collective": "all_reduce", "in": ["x", "x"], "out": ["y"]})",
           "2: a collective hands over one tensor; expected its name (at "
           "/program/stages/0/0/in)"},
          {R"({"collective": "all_reduce", "in": ["x"], "out": ["y", "z"]})",
           "2: a collective makes one tensor; expected one name (at /program/stages/0/0/out)"},
          {R"({"collective": "reduce_scatter", "in": ["x"], "out": ["y"]})",
           "2: 'reduce_scatter' cannot take shape [3, 2]; expected a first dimension that 2 ranks "
           "share evenly (at /program/stages/0/0)"},
          {R"({"collective": "all_reduce", "in": ["x"], "into": "x"})",
           "2: 'x' is a leaf; expected a tensor that the program makes (at "
           "/program/stages/0/0/into)"},
          {R"({"op": "empty", "in": [], "out": ["b"], "shape": [3, 2]},
{"collective": "all_gather", "in": ["x"], "into": "b"})",
           "3: 'b' has shape [3, 2] of f32; expected [6, 2] of f32 (at "
           "/program/stages/0/1/into)"},
          {R"({"op": "empty", "in": [], "out": ["b"], "shape": [6, 2]},
{"view": "slice", "in": ["b"], "out": ["p"], "shape": [3, 2], "stride": [2, 1]},
{"collective": "all_reduce", "in": ["x"], "into": "p"})",
           "4: 'p' is a part of its storage; expected a tensor that fills it (at "
           "/program/stages/0/2/into)"},
          {R"({"on_ranks": [2], "body": []})",
           "2: there is no rank 2; expected one below 2 (at /program/stages/0/0/on_ranks/0)"},
          {R"({"on_ranks": [1], "body": [{"op": "sin", "in": ["x"], "out": ["y"]}]},
{"op": "sin", "in": ["y"], "out": ["z"]})",
           "3: 'y' is used before it is made; expected an input, a parameter or an output of an "
           "earlier statement (at /program/stages/0/1/in/0)"},
      },
      opening, "]]}}");
}

TEST_CASE("ranks and groups are such as there are", "[sim][ranks]") {
  const std::string rest = R"(, "program": {"stages": [[]]}})";
  check(
      {
          {R"("ranks": 0)", "1: this is 0; expected an integer of 1 or more (at /ranks)"},
          {R"("ranks": 257)",
           "1: so many ranks are not simulated; expected 256 or fewer (at /ranks)"},
          {R"("ranks": 2, "groups": {"g": []})",
           "1: a group of nobody; expected a rank or more (at /groups/g)"},
          {R"("ranks": 2, "groups": {"g": [0, 0]})",
           "1: rank 0 is in the group already; expected it once (at /groups/g/1)"},
          {R"("ranks": 2, "groups": {"g": [2]})",
           "1: there is no rank 2; expected one below 2 (at /groups/g/0)"},
          {R"("ranks": 2, "groups": {"world": [0]})",
           "1: 'world' is the group of all ranks; expected another name (at /groups/world)"},
      },
      R"({"format": "rematsim-scenario", "version": 1, )", rest);
}

TEST_CASE("only protocols that keep ops keep collectives", "[sim][ranks]") {
  check({{R"("torch", "keep_collectives": true)",
          "1: 'torch' keeps no ops; expected no such option (at /protocol/keep_collectives)"}},
        R"({"format": "rematsim-scenario", "version": 1, "protocol": {"name": )",
        R"(}, "program": {"stages": [[]]}})");
}

TEST_CASE("ranks, groups and collectives are written as they were read", "[sim][ranks]") {
  const std::string stage = parallel_block("a", "x", "y") + "," +
                            op("empty", {}, {"b"}, R"("shape":[4,8])") + "," +
                            collective_into("all_reduce", "y", "b") + "," + loss_of("b");
  const Scenario scenario = parse_scenario(
      "test.json", ranks_scenario(4, stage, R"("name":"torch-sac","keep_collectives":false)",
                                  R"("groups":{"all":[3,2,1,0]},"steps":1)"));
  const std::string written = scenario_json(scenario, {});
  const Scenario again = parse_scenario("written.json", written);
  CHECK(scenario_json(again, {}) == written);
  CHECK(again.n_ranks == 4);
  REQUIRE(again.program.groups.size() == 2);
  CHECK(again.program.groups[1].ranks == std::vector<std::uint32_t>{3, 2, 1, 0});
  CHECK(run_scenario(again).result.gradients_match == true);
}

}  // namespace remat
