#include "model/program_writer.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario_writer.hpp"
#include "sim/simulation.hpp"
#include "traces/trace_hash.hpp"

namespace remat {
namespace {

std::string hash_of(const Scenario& scenario) {
  Trace trace;
  simulate(simulation_of(scenario), trace);
  return trace_hash(trace);
}

/// The scenario, read from what was written of it.
Scenario again(const Scenario& scenario) {
  Scenario read = parse_scenario("again.json", scenario_json(scenario, {}));
  read.config_json = scenario.config_json;  // a file may spell the same options otherwise
  return read;
}

}  // namespace

TEST_CASE("a scenario that is written reads back to the same run", "[model]") {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(REMATSIM_SOURCE_DIR) + "/sim/scenarios")) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path());
    const Scenario scenario = read_scenario(entry.path().string());
    CHECK(hash_of(again(scenario)) == hash_of(scenario));
  }
}

TEST_CASE("two tensors of one name are written under two", "[model]") {
  const Scenario scenario = parse_scenario("s.json", R"({
    "format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"shape": [4], "requires_grad": true}},
      "stages": [[
        {"op": "sin", "in": ["x"], "out": ["h"]},
        {"op": "cos", "in": ["h"], "out": ["h"]},
        {"op": "tanh", "in": ["h"], "out": ["y"], "saves": ["h", "y"]}]],
      "loss": "y"}})");
  const nlohmann::ordered_json json = program_json(scenario.program);
  const nlohmann::ordered_json& body = json["stages"][0];
  CHECK(body[0]["out"][0] == "h");
  CHECK(body[1]["in"][0] == "h");
  CHECK(body[1]["out"][0] == "h_2");
  CHECK(body[2]["in"][0] == "h_2");
  CHECK(body[2]["saves"] == nlohmann::ordered_json({"h_2", "y"}));
  CHECK(hash_of(again(scenario)) == hash_of(scenario));
}

TEST_CASE("an op that makes nothing is written as what it is", "[model]") {
  const Scenario scenario = parse_scenario("s.json", R"({
    "format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"shape": [4], "requires_grad": true}},
      "stages": [[
        {"op": "sin", "in": ["x"], "out": ["y"]},
        {"in_place": "record_stream", "in": ["y"], "cost_ns": 3}]],
      "loss": "y"}})");
  CHECK(program_json(scenario.program)["stages"][0][1] ==
        nlohmann::ordered_json::parse(R"({"in_place":"record_stream","in":["y"],"cost_ns":3})"));
  CHECK(hash_of(again(scenario)) == hash_of(scenario));
}

TEST_CASE("a tensor in a container stays in it", "[model]") {
  const Scenario scenario = parse_scenario("s.json", R"({
    "format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"shape": [4], "requires_grad": true}},
      "stages": [[
        {"checkpoint": "a", "body": [
          {"op": "sin", "in": ["x"], "out": ["h"]}, {"container": "out", "in": ["h"]}]},
        {"container": "in", "in": ["out.h"]},
        {"checkpoint": "b", "in": ["in.out.h", "x"], "body": [
          {"op": "mul", "in": ["in.out.h", "x"], "out": ["y"]}]}]],
      "loss": "y"}, "protocol": {"name": "torch"}})");
  const Program& program = scenario.program;
  const auto& statements = program.forwards.front().statements;
  std::vector<const RegionBegin*> regions;
  for (const Statement& statement : statements)
    if (const auto* region = std::get_if<RegionBegin>(&statement)) regions.push_back(region);
  REQUIRE(regions.size() == 2);
  REQUIRE(regions[0]->outputs.size() == 1);
  CHECK(program.values[regions[0]->outputs[0]].in_container);
  CHECK(regions[1]->inputs.size() == 1);    // x
  CHECK(regions[1]->captured.size() == 1);  // h, which the protocol does not see
  CHECK(hash_of(again(scenario)) == hash_of(scenario));
}

}  // namespace remat
