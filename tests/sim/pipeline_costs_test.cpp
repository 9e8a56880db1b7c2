#include "sim/pipeline_costs.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "model/errors.hpp"

using namespace remat;

namespace {

PipelineCosts costs_of(const std::string& text) {
  PipelineCosts costs;
  set_costs(text, costs);
  return costs;
}

PipelineCosts costs_in(const std::string& json) {
  PipelineCosts costs;
  read_costs("costs.json", json, costs);
  return costs;
}

template <typename Function>
std::string refusal(Function function, const std::string& text) {
  try {
    function(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("B costs DX and DW, and R costs F, unless it is said", "[sim]") {
  const PipelineCosts costs = costs_of("F=3,DX=4,DW=5");
  CHECK(costs.of({.work = Work::backward}) == 9);
  CHECK(costs.of({.work = Work::replay}) == 3);
  CHECK(costs.of({.work = Work::recv_forward}) == 0);
  CHECK(costs_of("B=7,R=2,COMM=6").of({.work = Work::backward}) == 7);
  CHECK(costs_of("B=7,R=2,COMM=6").of({.work = Work::replay}) == 2);
  CHECK(costs_of("B=7,R=2,COMM=6").latency == 6);
}

TEST_CASE("costs differ by stage and by micro-batch", "[sim]") {
  const PipelineCosts costs = costs_in(R"({"F": [1, [2, 3]], "DX": 4, "COMM": 5})");
  CHECK(costs.of({.work = Work::forward, .stage = 0, .microbatch = 1}) == 1);
  CHECK(costs.of({.work = Work::forward, .stage = 1, .microbatch = 0}) == 2);
  CHECK(costs.of({.work = Work::replay, .stage = 1, .microbatch = 1}) == 3);
  CHECK(costs.of({.work = Work::backward, .stage = 1}) == 5);
  CHECK(costs.latency == 5);
}

TEST_CASE("bad costs are refused in one line", "[sim]") {
  const std::string expected =
      " is no cost; expected F, B, DX, DW, R or COMM, '=' and a whole number up to 100000000000";
  for (const std::string word :
       {"F", "F=", "F=-1", "F=1.5", "F=x", "G=1", "=1", "F=100000000001", "F=1x"}) {
    CHECK(refusal(costs_of, word) ==
          std::string("--cost: '").append(word).append("'").append(expected));
  }
  CHECK(refusal(costs_of, "F=1,,B=2") == "--cost: ''" + expected);
  CHECK(refusal(costs_in, R"({"F": -1})") ==
        "costs.json:1: this is -1; expected an integer of 0 or more (at /F)");
  CHECK(refusal(costs_in, R"({"F": []})") ==
        "costs.json:1: no costs; expected one for each stage (at /F)");
  CHECK(refusal(costs_in, R"({"F": [[]]})") ==
        "costs.json:1: no costs; expected one for each micro-batch (at /F/0)");
  CHECK(refusal(costs_in, R"({"COMM": 100000000001})") ==
        "costs.json:1: larger than 100000000000; expected less (at /COMM)");
  CHECK_FALSE(refusal(costs_in, R"({"X": 1})").empty());
}

TEST_CASE("costs must reach as far as the lists", "[sim]") {
  const auto missing = [](const std::string& json) {
    try {
      require_costs_for(costs_in(json), {.pipes = 1, .stages = 2, .microbatches = 3, .slices = 1});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(missing(R"({"F": [1, 2], "B": [[1, 2, 3], [4]]})").empty());
  CHECK(missing(R"({"F": [1]})") == "--costs: F has 1 stages; expected 2");
  CHECK(missing(R"({"R": [1, [1, 2]]})") ==
        "--costs: R has a stage with 2 micro-batches; expected 3");
}
