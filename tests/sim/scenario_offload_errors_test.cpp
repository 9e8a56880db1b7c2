#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/scenario_writer.hpp"
#include "tests/sim/wrong_scenario.hpp"

// What can be wrong in what a scenario says of offload, and what is right of it written again.

namespace remat {
namespace {

const std::string opening =
    "{\"format\": \"rematsim-scenario\", \"version\": 1,\n"
    "\"program\": {\"inputs\": {\"x\": {\"shape\": [4]}}, \"stages\": [[";

}  // namespace

TEST_CASE("an offload group lies among the stage's statements, and names a level",
          "[sim][offload]") {
  check(
      {
          {R"({"offload": "g", "to": "tape", "body": []})",
           "2: unknown level 'tape'; expected one of host, disk (at /program/stages/0/0/to)"},
          {R"({"offload": "g"})",
           "2: 'body' is missing; expected it here (at /program/stages/0/0)"},
          {R"({"offload": "g", "body": [{"offload": "h", "body": []}]})",
           "2: offload group 'h' lies in another block; expected it among the stage's own "
           "statements (at /program/stages/0/0/body/0/offload)"},
          {R"({"checkpoint": "c", "body": [{"offload": "h", "body": []}]})",
           "2: offload group 'h' lies in another block; expected it among the stage's own "
           "statements (at /program/stages/0/0/body/0/offload)"},
          {R"({"offload": 3, "body": []})",
           "2: this is 3; expected a text (at /program/stages/0/0/offload)"},
      },
      opening, "]]}}");
}

TEST_CASE("what is sent is one of the things that there are", "[sim][offload]") {
  const auto protocol = [](const std::string& name) {
    return opening + "]]},\n\"protocol\": {\"name\": \"" + name + "\", \"offload\": ";
  };
  check(
      {
          {R"({"what": ["weights"]})",
           "3: unknown thing 'weights'; expected one of saved, region_inputs, excluded, cached (at "
           "/protocol/offload/what/0)"},
          {R"({"what": ["saved", "cached", "saved"]})",
           "3: 'saved' is named twice; expected each thing once (at /protocol/offload/what/2)"},
          {"{}", "3: 'what' is missing; expected it here (at /protocol/offload)"},
          {"1", "3: this is 1; expected true or false (at /protocol/offload)"},
          {R"({"what": true})", "3: this is true; expected a list (at /protocol/offload/what)"},
      },
      protocol("torch"), "}}");
  check({{"false",
          "3: the protocol is offload; expected true, or another protocol (at /protocol/offload)"}},
        protocol("offload"), "}}");
}

TEST_CASE("a link has a rate and a latency", "[sim][offload]") {
  check(
      {
          {R"({"tape": {}})",
           "3: unknown key 'tape'; expected one of host, disk (at /machine/links/tape)"},
          {R"({"host": {"bytes_per_second": 0}})",
           "3: this is 0; expected an integer of 1 or more (at "
           "/machine/links/host/bytes_per_second)"},
          {R"({"disk": {"latency_ns": -1}})",
           "3: this is -1; expected an integer of 0 or more (at /machine/links/disk/latency_ns)"},
      },
      opening + "]]},\n\"machine\": {\"links\": ", "}}");
}

TEST_CASE("a scenario's offload is written as it is read", "[sim][offload]") {
  const std::string text =
      opening +
      R"({"offload":"g","to":"disk","body":[{"op":"sin","in":["x"],"out":["y"]}]},)"
      R"({"offload":"h","body":[]}]],"loss":"y"},)"
      R"("protocol":{"name":"torch","offload":{"what":["region_inputs","cached"]}},)"
      R"("machine":{"links":{"host":{"bytes_per_second":7,"latency_ns":2},"disk":{"latency_ns":3}}}})";
  const std::string once = scenario_json(parse_scenario("s.json", text), {});
  CHECK(scenario_json(parse_scenario("s.json", once), {}) == once);
  const Scenario again = parse_scenario("s.json", once);
  CHECK(again.options.offload->region_inputs);
  CHECK(again.options.offload->cached);
  CHECK_FALSE(again.options.offload->saved);
  CHECK_FALSE(again.options.offload->excluded);
  CHECK(again.rank.links[0] == LinkRate{7, {2}});
  CHECK(again.rank.links[1] == LinkRate{0, {3}});
  const auto& group = std::get<OffloadBegin>(again.program.forwards[0].statements[0]);
  CHECK(group.name == "g");
  CHECK(group.level == MemoryLevel::disk);
}

}  // namespace remat
