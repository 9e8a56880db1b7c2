#include "properties/program_text.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace remat {

TEST_CASE("a program is told as a person reads it", "[properties]") {
  const Scenario scenario = parse_scenario("s.json", R"({
    "format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"dtype": "f8", "shape": [11], "requires_grad": true}},
      "params": {"w": {"dtype": "f8", "shape": [11], "requires_grad": false}},
      "stages": [[
        {"container": "box", "in": ["x"]},
        {"checkpoint": "r0", "in": [], "early_stop": false, "body": [
          {"op": "mul", "in": ["box.x", "w"], "out": ["a"], "keep": true},
          {"view": "slice", "in": ["a"], "out": ["b"], "shape": [5], "offset": 6},
          {"no_grad": [{"op": "sin", "in": ["b"], "out": ["c"]}]},
          {"branch": "replay", "body": [{"raise": "builtins.ValueError", "in": "replay"}]},
          {"side_effect": "log"},
          {"in_place": "scale", "in": ["a"]}]},
        {"op": "sum", "in": ["a"], "out": ["loss"]},
        {"update": "w"}]],
      "loss": "loss"},
    "protocol": {"name": "torch-sac", "keep_every": 2},
    "schedule": {"microbatches": 2, "actions": [["F0.0", "F0.1",
      {"action": "B0.1", "retain": true, "group": 3, "wrt": ["x"]}, "UPDATE"]]}})");
  CHECK(program_text(scenario) ==
        "protocol {\"keep_every\":2,\"name\":\"torch-sac\"}\n"
        "input x f8[11]\n"
        "parameter w f8[11], frozen\n"
        "region r0(), in a container: x, no early stop:\n"
        "  a = mul(x, w), f8[11], saves w, kept by the policy\n"
        "  b = slice(a), a view f8[5] at 6\n"
        "  no_grad:\n"
        "    c = sin(b), f8[5]\n"
        "  only in a replay:\n"
        "    raise builtins.ValueError in a replay\n"
        "  effect log\n"
        "  scale_(a)\n"
        "loss = sum(a), f8[]\n"
        "the caller writes w\n"
        "backward from loss\n"
        "step: F0.0 F0.1 B0.1 (retain, group 3, only x) UPDATE\n");
}

}  // namespace remat
