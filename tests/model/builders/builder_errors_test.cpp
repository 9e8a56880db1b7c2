#include <catch2/catch.hpp>

#include "model/builders/program_builders.hpp"
#include "sim/scenario_writer.hpp"
#include "tests/model/builders/built_program.hpp"
#include "tests/sim/wrong_scenario.hpp"
#include "traces/trace_hash.hpp"

// Every builder's program that cannot be, and all that is said of it. It stands on line 2.

namespace remat {
namespace {

void check_builders(const std::vector<WrongScenario>& rows) {
  check(rows, "{\"format\": \"rematsim-scenario\", \"version\": 1, \"program\":\n", "}");
}

std::string with(const std::string& sizes, const std::string& more) {
  return "{" + sizes + (more.empty() ? "" : ", ") + more + "}";
}
std::string transformer(const std::string& more) {
  return with(R"("builder": "transformer", "layers": 2, "hidden": 12, "sequence": 6)", more);
}
std::string chain(const std::string& more) {
  return with(R"("builder": "chain")", more);
}
std::string moe(const std::string& more) {
  return with(
      R"("builder": "moe", "layers": 1, "hidden": 8, "ffn": 8, "experts": 4, "sequence": 6)", more);
}

const std::string of_size = "expected an integer of 1 or more (at /program/";

}  // namespace

TEST_CASE("a builder that is not there, or gets what it does not know", "[model][builders]") {
  check_builders({
      {R"({"builder": "resnet"})",
       "2: unknown builder 'resnet'; expected one of chain, transformer, moe (at "
       "/program/builder)"},
      {R"({"builder": 7})", "2: this is 7; expected a text (at /program/builder)"},
      {transformer(R"("heads": 2, "depth": 3)"),
       "2: unknown key 'depth'; expected one of builder, layers, hidden, heads, sequence, batch, "
       "ffn, dtype, tensor_parallel, sequence_parallel, attention, flash, dropout, checkpoint (at "
       "/program/depth)"},
      {chain(R"("steps": 2, "stages": [])"),
       "2: unknown key 'stages'; expected one of builder, steps, bytes, cost_ns, backward_ns, "
       "checkpoint, segments, keep_last (at /program/stages)"},
      {moe(R"("top_k": 2, "heads_kv": 1)"),
       "2: unknown key 'heads_kv'; expected one of builder, layers, hidden, ffn, experts, top_k, "
       "capacity, sequence, batch, dtype, dsa, heads, selected, indexer (at /program/heads_kv)"},
      {transformer(""), "1: 'heads' is missing; expected it here (at /program)"},
      {chain(""), "1: 'steps' is missing; expected it here (at /program)"},
      {moe(""), "1: 'top_k' is missing; expected it here (at /program)"},
  });
}

TEST_CASE("sizes of a transformer that do not go together", "[model][builders]") {
  check_builders({
      {transformer(R"("heads": 5)"),
       "2: 5 does not divide the hidden size, 12; expected a divisor of it (at /program/heads)"},
      {transformer(R"("heads": 0)"), "2: this is 0; " + of_size + "heads)"},
      {transformer(R"("heads": 1.5)"), "2: this is 1.5; " + of_size + "heads)"},
      {transformer(R"("heads": 2, "batch": 4294967296)"),
       "2: this is 4294967296; expected an integer of 1 to 2147483647 (at /program/batch)"},
      {transformer(R"("heads": 4, "tensor_parallel": 3)"),
       "2: 3 does not divide the number of heads, 4; expected a divisor of it (at "
       "/program/tensor_parallel)"},
      {transformer(R"("heads": 4, "ffn": 10, "tensor_parallel": 4)"),
       "2: 4 does not divide the size of the feed-forward layer, 10; expected a divisor of it (at "
       "/program/tensor_parallel)"},
      {transformer(R"("heads": 4, "tensor_parallel": 4, "sequence_parallel": true)"),
       "2: 4 does not divide the sequence, 6; expected a divisor of it (at "
       "/program/tensor_parallel)"},
      {transformer(R"("heads": 2, "dtype": "i8")"),
       "2: unknown dtype 'i8'; expected one of bf16, f16, f32 (at /program/dtype)"},
      {transformer(R"("heads": 2, "attention": "kept")"),
       "2: no replay would run the attention that is kept; expected \"checkpoint\": \"layer\" with "
       "it (at /program/attention)"},
      {transformer(R"("heads": 2, "checkpoint": "attention")"),
       "2: unknown checkpoint 'attention'; expected one of none, layer (at /program/checkpoint)"},
      {transformer(R"("heads": 2, "flash": "yes")"),
       "2: this is the text \"yes\"; expected true or false (at /program/flash)"},
      {R"({"builder": "transformer", "layers": 20000, "hidden": 8, "heads": 2, "sequence": 4})",
       "2: 20000 is above the most that is simulated, 10000; expected no more (at "
       "/program/layers)"},
      {R"({"builder": "transformer", "layers": 1, "hidden": 8, "heads": 8,
           "sequence": 2000000000})",
       "1: 'layer0.scores' of shape [1, 8, 2000000000, 2000000000] is larger than any memory; "
       "expected smaller sizes (at /program)"},
  });
}

TEST_CASE("steps and segments of a chain that do not go together", "[model][builders]") {
  check_builders({
      {chain(R"("steps": 0)"), "2: this is 0; " + of_size + "steps)"},
      {chain(R"("steps": [])"), "2: no step is listed; expected one or more (at /program/steps)"},
      {chain(R"("steps": 1000000)"),
       "2: 1000000 is above the most that is simulated, 100000; expected no more (at "
       "/program/steps)"},
      {chain(R"("steps": [{"bytes": 0}])"), "2: this is 0; " + of_size + "steps/0/bytes)"},
      {chain(R"("steps": [{"size": 1}])"),
       "2: unknown key 'size'; expected one of bytes, cost_ns, backward_ns (at "
       "/program/steps/0/size)"},
      {chain(R"("steps": 2, "cost_ns": -1)"),
       "2: this is -1; expected an integer of 0 or more (at /program/cost_ns)"},
      {chain(R"("steps": 4, "segments": 2)"),
       "2: nothing is cut into segments; expected \"checkpoint\": \"segments\" (at "
       "/program/segments)"},
      {chain(R"("steps": 4, "checkpoint": "segments")"),
       "1: 'segments' is missing; expected it here (at /program)"},
      {chain(R"("steps": 4, "checkpoint": "segments", "segments": 5)"),
       "2: there are 5 segments of 4 steps; expected no more than one for each (at "
       "/program/segments)"},
      {chain(R"("steps": 4, "checkpoint": "segments", "segments": [1, 2])"),
       "2: segments of 3 steps; expected 4 together (at /program/segments)"},
      {chain(R"("steps": 4, "checkpoint": "segments", "segments": [4, 0])"),
       "2: this is 0; " + of_size + "segments/1)"},
  });
}

TEST_CASE("sizes of a mixture of experts that do not go together", "[model][builders]") {
  const std::string no_dsa =
      "2: there is no sparse attention; expected \"dsa\": true (at /program/";
  check_builders({
      {moe(R"("top_k": 5)"),
       "2: 5 is above the number of experts, 4; expected no more (at /program/top_k)"},
      {moe(R"("top_k": 2, "heads": 2)"), no_dsa + "heads)"},
      {moe(R"("top_k": 2, "dsa": false, "selected": 2)"), no_dsa + "selected)"},
      {moe(R"("top_k": 2, "dsa": true)"), "1: 'heads' is missing; expected it here (at /program)"},
      {moe(R"("top_k": 2, "dsa": true, "heads": 3, "selected": 2)"),
       "2: 3 does not divide the hidden size, 8; expected a divisor of it (at /program/heads)"},
      {moe(R"("top_k": 2, "dsa": true, "heads": 2, "selected": 7)"),
       "2: 7 is above the sequence, 6; expected no more (at /program/selected)"},
      {R"({"builder": "moe", "layers": 1, "hidden": 1, "ffn": 1, "experts": 2147483647,
           "sequence": 1, "top_k": 1, "capacity": 2147483647})",
       "1: 'layer0.order' of shape [4611686014132420609] is larger than any memory; expected "
       "smaller sizes (at /program)"},
  });
}

TEST_CASE("the schema of a scenario has every builder with its keys", "[model][builders]") {
  const Json schema = Json::parse(scenario_schema());
  const Json& programs = schema["properties"]["program"]["anyOf"];
  REQUIRE(programs.size() == 1 + program_builders().size());
  for (std::size_t i = 0; i < program_builders().size(); ++i) {
    const ProgramBuilderRow& row = program_builders()[i];
    const Json& builder = programs[i + 1];
    CHECK(builder["properties"]["builder"]["enum"] == Json::array({row.name}));
    CHECK(builder["properties"].size() == row.keys.size());
  }
}

TEST_CASE("a program that was built is written as its statements", "[model][builders]") {
  const Json sizes = {{"layers", 2}, {"hidden", 8}, {"sequence", 6}};
  const Json model = changed(changed({{"builder", "transformer"}, {"heads", 2}}, sizes),
                             {{"checkpoint", "layer"}, {"attention", "kept"}});
  const Json experts = changed(changed({{"builder", "moe"}, {"ffn", 8}, {"experts", 4}}, sizes),
                               {{"top_k", 2}, {"dsa", true}, {"heads", 2}, {"selected", 3}});
  const Json chain = {
      {"builder", "chain"}, {"steps", 7}, {"checkpoint", "segments"}, {"segments", 2}};
  for (const Json& program : {model, changed(model, {{"flash", true}}), experts, chain}) {
    CAPTURE(program.dump());
    const Scenario built =
        parse_scenario("s.json", text_of(program, {{"name", "exclude-rederive"}}));
    const std::string written = scenario_json(built, {});
    CHECK_FALSE(Json::parse(written)["program"].contains("builder"));
    Scenario read = parse_scenario("again.json", written);
    read.config_json = built.config_json;
    Trace first;
    simulate(simulation_of(built), first);
    Trace second;
    simulate(simulation_of(read), second);
    CHECK(trace_hash(first) == trace_hash(second));
  }
}

}  // namespace remat
