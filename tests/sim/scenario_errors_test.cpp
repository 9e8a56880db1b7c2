#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/op_kinds.hpp"
#include "tests/sim/wrong_scenario.hpp"

// Every scenario that cannot be, and all that is said of it.

namespace remat {
namespace {

/// Statements stand on line 5 of a scenario with an input `x`, a parameter `w` and an integer `i`.
const std::string before_statements =
    "{\"format\": \"rematsim-scenario\", \"version\": 1, \"program\": {\n"
    "\"inputs\": {\"x\": {\"shape\": [4, 8], \"requires_grad\": true},\n"
    "\"i\": {\"shape\": [4], \"dtype\": \"i64\"}}, \"params\": {\"w\": {\"shape\": [8, 2]}},\n"
    "\"stages\": [[\n";
const std::string after_statements = "\n]]}}";

void check_statements(const std::vector<WrongScenario>& rows) {
  check(rows, before_statements, after_statements);
}

/// The whole program stands on line 2.
void check_programs(const std::vector<WrongScenario>& rows) {
  check(rows, "{\"format\": \"rematsim-scenario\", \"version\": 1, \"program\":\n", "}");
}

std::string known_kinds() {
  std::string known;
  for (const OpKind& kind : op_kinds())
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  return known;
}

const std::string not_json = "; expected one JSON object";
const std::string at_0 = " (at /program/stages/0/0)";
const std::string reads_0 = " (at /program/stages/0/0/in/0)";
const std::string not_made =
    "' is used before it is made; expected an input, a parameter or an output of an earlier "
    "statement (at ";

}  // namespace

TEST_CASE("a scenario in which nothing is wrong is read", "[sim]") {
  for (const std::string statements :
       {R"()", R"({"op": "mm", "in": ["x", "w"], "out": ["y"]})",
        R"({"random": "dropout", "in": ["x"], "out": ["y", "mask"]})",
        R"({"no_grad": [{"in_place": "relu_", "in": ["x"]}]})",
        R"({"in_place": "add_", "in": ["i"]})", R"({"update": "w"})", R"({"side_effect": "log"})",
        R"({"raise": "E", "in": "replay"})",
        R"({"view": "slice", "in": ["x"], "out": ["y"], "shape": [3, 8], "offset": 8})",
        R"({"container": "d", "in": ["x"]}, {"op": "sin", "in": ["d.x"], "out": ["y"]})",
        R"({"branch": "forward", "body": [{"op": "sin", "in": ["x"], "out": ["y"]}]},
           {"op": "sin", "in": ["y"], "out": ["z"]})"}) {
    CAPTURE(statements);
    std::string text = before_statements;
    text += statements;
    text += after_statements;
    CHECK(message_of(text) == "no error");
  }
}

TEST_CASE("a scenario that is no JSON object is refused", "[sim]") {
  check(
      {
          {"", "1: this is not JSON at byte 0" + not_json},
          {"\n\n", "3: this is not JSON at byte 2" + not_json},
          {"{\n\"format\": \"rematsim-scenario\",\n\"version\": 1,\n\"program\": {\"stages\": [[",
           "4: this is not JSON at byte 71" + not_json},
          {"{\n\"format\": \"\xc0\xaf\"}", "2: this is not JSON at byte 13" + not_json},
          {"[]", "1: this is array; expected an object (at /)"},
          {"null", "1: this is null; expected an object (at /)"},
          {"\"a\"", "1: this is the text \"a\"; expected an object (at /)"},
      },
      "", "");
}

TEST_CASE("a scenario says what it is", "[sim]") {
  check(
      {
          {"{}", "1: 'format' is missing; expected it here (at /)"},
          {"{\"version\": 1}", "1: 'format' is missing; expected it here (at /)"},
          {"{\n\"format\": \"ckpt-trace\"}",
           "2: this is no scenario; expected \"rematsim-scenario\" (at /format)"},
          {"{\"format\": 1}", "1: this is 1; expected a text (at /format)"},
          {"{\"format\": \"rematsim-scenario\"}",
           "1: 'version' is missing; expected it here (at /)"},
          {"{\"format\": \"rematsim-scenario\",\n\"version\": 2}",
           "2: version 2 is newer than this program knows; expected 1 (at /version)"},
          {"{\"format\": \"rematsim-scenario\",\n\"version\": 0}",
           "2: this is 0; expected an integer of 1 or more (at /version)"},
          {"{\"format\": \"rematsim-scenario\", \"version\": \"1\"}",
           "1: this is the text \"1\"; expected an integer of 1 or more (at /version)"},
          {"{\"format\": \"rematsim-scenario\", \"version\": 1}",
           "1: 'program' is missing; expected it here (at /)"},
          {"{\"format\": \"rematsim-scenario\", \"version\": 1,\n\"programme\": {}}",
           "2: unknown key 'programme'; expected one of format, version, name, about, case, "
           "program, protocol, schedule, machine, ranks, groups, steps, seed (at /programme)"},
      },
      "", "");
}

TEST_CASE("a program has inputs, parameters and one stage", "[sim]") {
  check_programs({
      {"3", "1: this is 3; expected an object (at /program)"},
      {"{}", "1: 'stages' is missing; expected it here (at /program)"},
      {"{\"stages\": [[], []]}", "2: there are 2 stages; expected one (at /program/stages)"},
      {"{\"stages\": []}", "2: there are 0 stages; expected one (at /program/stages)"},
      {"{\"stages\": {}}", "2: this is object; expected a list (at /program/stages)"},
      {"{\"stages\": [{}]}", "2: this is object; expected a list (at /program/stages/0)"},
      {"{\"stages\": [[]], \"loss\": \"y\"}", "2: 'y" + not_made + "/program/loss)"},
      {"{\"stages\": [[]], \"loss\": [\"y\"]}",
       "2: this is array; expected a text (at /program/loss)"},
      {"{\"built\": \"transformer\"}",
       "2: unknown key 'built'; expected one of loss, inputs, params, bodies, stages (at "
       "/program/built)"},
      {"{\"stages\": [[]], \"inputs\": []}",
       "2: this is array; expected an object (at /program/inputs)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": [4]}}",
       "2: this is array; expected an object (at /program/inputs/x)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {}}}",
       "2: 'shape' is missing; expected it here (at /program/inputs/x)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": [4], \"device\": 0}}}",
       "2: unknown key 'device'; expected one of dtype, shape, requires_grad (at "
       "/program/inputs/x/device)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": 4}}}",
       "2: this is 4; expected a list (at /program/inputs/x/shape)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": [4,\n-1]}}}",
       "3: this is -1; expected an integer of 0 or more (at /program/inputs/x/shape/1)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": [1e30]}}}",
       "2: this is 1e+30; expected an integer of 0 or more (at /program/inputs/x/shape/0)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": [1.5]}}}",
       "2: this is 1.5; expected an integer of 0 or more (at /program/inputs/x/shape/0)"},
      {"{\"stages\": [[]], \"inputs\": {\"x\": {\"shape\": [4611686018427387904]}}}",
       "2: the tensor is larger than any memory; expected a smaller shape (at "
       "/program/inputs/x/shape)"},
      {"{\"stages\": [[]], \"params\": {\"w\": {\"shape\": [], \"dtype\": 32}}}",
       "2: this is 32; expected a text (at /program/params/w/dtype)"},
      {"{\"stages\": [[]], \"params\": {\"w\": {\"shape\": [], \"requires_grad\": 1}}}",
       "2: this is 1; expected true or false (at /program/params/w/requires_grad)"},
      {"{\"stages\": [[]], \"inputs\": {\"\": {\"shape\": []}}}",
       "2: an empty name; expected one that a statement can use (at /program/inputs/)"},
  });
}

TEST_CASE("an op has a known kind and tensors that go together", "[sim]") {
  check_statements({
      {R"({"op": "frob", "in": ["x"], "out": ["y"]})",
       "5: unknown op kind 'frob'; expected one of " + known_kinds() + at_0},
      {R"({"op": "mm", "in": ["x", "x"], "out": ["y"]})",
       "5: 'mm' cannot take shapes [4, 8], [4, 8]; expected inner dimensions that agree: [4, 8] × "
       "[4, 8]" +
           at_0},
      {R"({"op": "add", "in": ["x", "w"], "out": ["y"]})",
       "5: 'add' cannot take shapes [4, 8], [8, 2]; expected shapes that broadcast" + at_0},
      {R"({"op": "mm", "in": ["x"], "out": ["y"]})",
       "5: 'mm' cannot take shapes [4, 8]; expected two inputs" + at_0},
      {R"({"op": "zeros", "out": ["y"]})",
       "5: 'zeros' cannot take shapes none; expected an input, or a shape of its own" + at_0},
      {R"({"op": "sin", "in": ["y"], "out": ["y"]})",
       "5: 'y" + not_made + "/program/stages/0/0/in/0)"},
      {R"({"op": "sin", "in": "x", "out": ["y"]})",
       "5: this is the text \"x\"; expected a list (at /program/stages/0/0/in)"},
      {R"({"op": "sin", "in": [1], "out": ["y"]})", "5: this is 1; expected a text" + reads_0},
      {R"({"op": "sin", "in": ["x"]})", "5: 'out' is missing; expected it here" + at_0},
      {R"({"op": "sin", "in": ["x"], "out": []})",
       "5: no output is named; expected one or more (at /program/stages/0/0/out)"},
      {R"({"op": "sin", "in": ["x"], "out": [""]})",
       "5: an empty name; expected one that a statement can use (at /program/stages/0/0/out/0)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "output": 1})",
       "5: unknown key 'output'; expected one of op, in, out, attrs, keep, dtype, dtypes, shape, "
       "shapes, stride, replay_offset, saves, cost_ns, gradient_cost_ns (at "
       "/program/stages/0/0/output)"},
      {R"({"op": "dropout", "in": ["x"], "out": ["y", "m"], "shapes": [[4]]})",
       "5: 1 shapes; expected one for each output (at /program/stages/0/0/shapes)"},
      {R"({"op": "dropout", "in": ["x"], "out": ["y", "m"], "dtypes": ["f32"]})",
       "5: 1 dtypes; expected one for each output (at /program/stages/0/0/dtypes)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "gradient_cost_ns": -1})",
       "5: this is -1; expected an integer of 0 or more (at "
       "/program/stages/0/0/gradient_cost_ns)"},
      {R"({"op": ["sin"], "in": ["x"], "out": ["y"]})",
       "5: this is array; expected a text (at /program/stages/0/0/op)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "saves": ["w"]})",
       "5: 'w' cannot be saved here; expected an input or output of the op (at "
       "/program/stages/0/0/saves/0)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "saves": ["nothing"]})",
       "5: 'nothing' cannot be saved here; expected an input or output of the op (at "
       "/program/stages/0/0/saves/0)"},
      {"{\"op\": \"sin\", \"in\": [\"x\"], \"out\": [\"y\"],\n\"cost_ns\": -1}",
       "6: this is -1; expected an integer of 0 or more (at /program/stages/0/0/cost_ns)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "cost_ns": 1e30})",
       "5: this is 1e+30; expected an integer of 0 or more (at /program/stages/0/0/cost_ns)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "keep": "yes"})",
       "5: this is the text \"yes\"; expected true or false (at /program/stages/0/0/keep)"},
      {R"({"op": "zeros", "out": ["y"], "shape": [4611686018427387904]})",
       "5: the tensor is larger than any memory; expected a smaller shape (at "
       "/program/stages/0/0/out/0)"},
      {R"({"op": "zeros", "out": ["y"], "shape": [2, 2], "stride": [1]})",
       "5: a stride for 1 dimensions; expected one for each of [2, 2] (at "
       "/program/stages/0/0/stride)"},
      {R"({"op": "record_stream", "in": ["x"], "out": ["y"]})",
       "5: 'record_stream' makes no tensor; expected it under 'in_place' (at "
       "/program/stages/0/0/op)"},
      {R"({"random": "sin", "in": ["x"], "out": ["y"]})",
       "5: 'sin' draws no random number; expected dropout, rand, bernoulli or the like (at "
       "/program/stages/0/0/random)"},
  });
}

TEST_CASE("a statement is one of those that are known", "[sim]") {
  const std::string known =
      "; expected one of the keys op, view, in_place, random, collective, on_ranks, container, "
      "checkpoint, unit, "
      "exclude, region, needs_tensor, mark, compiled, offload, call, branch, no_grad, catch, "
      "side_effect, "
      "update, raise";
  check_statements({
      {R"({})", "5: this statement says nothing that is known" + known + at_0},
      {R"({"rgion": "gemm"})", "5: this statement says nothing that is known" + known + at_0},
      {R"({"region": "gemm"})", "5: 'recompute' is missing; expected it here" + at_0},
      {R"({"region": "gemm", "recompute": false})",
       "5: 'body' is missing; expected it here" + at_0},
      {R"({"region": "", "recompute": false, "body": []})",
       "5: a region without a name; expected one (at /program/stages/0/0/region)"},
      {R"({"region": "gemm", "recompute": 1, "body": []})",
       "5: this is 1; expected true or false (at /program/stages/0/0/recompute)"},
      {R"({"region": "gemm", "recompute": true, "body": [], "save_output": true})",
       "5: unknown key 'save_output'; expected one of region, recompute, in, kwargs, out, body (at "
       "/program/stages/0/0/save_output)"},
      {R"({"needs_tensor": "y"})", "5: 'y" + not_made + "/program/stages/0/0/needs_tensor)"},
      {R"({"needs_tensor": "x", "in": []})",
       "5: unknown key 'in'; expected one of needs_tensor (at /program/stages/0/0/in)"},
      {R"({"exclude": "gemm"})", "5: 'body' is missing; expected it here" + at_0},
      {R"("sin")", "5: this is the text \"sin\"; expected an object" + at_0},
      {R"([])", "5: this is array; expected an object" + at_0},
      {R"({"side_effect": 1})",
       "5: this is 1; expected a text (at /program/stages/0/0/side_effect)"},
      {R"({"side_effect": "log", "in": []})",
       "5: unknown key 'in'; expected one of side_effect (at /program/stages/0/0/in)"},
  });
}

TEST_CASE("a write in place has something to write that may be written", "[sim]") {
  check_statements({
      {R"({"in_place": "relu_", "in": ["x"]})",
       "5: 'x' is a leaf that requires grad; expected no_grad around what writes it in place" +
           reads_0},
      {R"({"in_place": "add_", "in": []})",
       "5: nothing is written; expected a tensor under 'in'" + at_0},
      {R"({"in_place": "add_"})", "5: nothing is written; expected a tensor under 'in'" + at_0},
      {R"({"in_place": "add_", "in": ["i"], "out": ["y"]})",
       "5: unknown key 'out'; expected one of in_place, in, attrs, keep, saves, cost_ns, "
       "gradient_cost_ns (at /program/stages/0/0/out)"},
      {R"({"update": "y"})", "5: 'y" + not_made + "/program/stages/0/0/update)"},
      {R"({"update": ["w"]})", "5: this is array; expected a text (at /program/stages/0/0/update)"},
      {R"({"update": "w", "in": []})",
       "5: unknown key 'in'; expected one of update (at /program/stages/0/0/in)"},
  });
}

TEST_CASE("a view lies within its storage", "[sim]") {
  check_statements({
      {R"({"view": "slice", "in": ["x"], "out": ["y"], "shape": [4, 8], "offset": 1})",
       "5: the view reaches element 32 of a storage of 32; expected it to lie within" + at_0},
      {R"({"view": "view", "in": ["x"], "out": ["y"], "shape": [33]})",
       "5: the view reaches element 32 of a storage of 32; expected it to lie within" + at_0},
      {R"({"view": "as_strided", "in": ["x"], "out": ["y"], "shape": [2],
           "stride": [9223372036854775807]})",
       "5: the view reaches element 9223372036854775806 of a storage of 32; expected it to lie "
       "within" +
           at_0},
      {R"({"view": "as_strided", "in": ["x"], "out": ["y"], "shape": [2, 2], "stride": [1]})",
       "5: a stride for 1 dimensions; expected one for each of [2, 2]" + at_0},
      {R"({"view": "as_strided", "in": ["x"], "out": ["y"], "shape": [2], "stride": [-1]})",
       "5: this is -1; expected an integer of 0 or more (at /program/stages/0/0/stride/0)"},
      {R"({"view": "slice", "in": ["x"], "out": ["y"], "offset": -1})",
       "5: this is -1; expected an integer of 0 or more (at /program/stages/0/0/offset)"},
      {R"({"view": "sin", "in": ["x"], "out": ["y"]})",
       "5: 'sin' makes no view; expected view, t, transpose, slice, select, expand or the like (at "
       "/program/stages/0/0/view)"},
      {R"({"view": "t", "in": ["i"], "out": ["y"]})",
       "5: 't' cannot take shapes [4]; expected two dimensions or more" + at_0},
      {R"({"view": "view", "in": ["x"], "out": ["y"], "dtype": "i32"})",
       "5: a view of a tensor of f32 is one of f32; expected that, or view_dtype (at "
       "/program/stages/0/0/dtype)"},
      {R"({"view": "view_dtype", "in": ["x"], "out": ["y"], "dtype": "i8"})",
       "5: an element of i8 has other bytes than one of f32; expected a type of that size (at "
       "/program/stages/0/0/dtype)"},
      {R"({"view": "view", "in": ["x"], "out": ["y"], "cost_ns": 1})",
       "5: unknown key 'cost_ns'; expected one of view, in, out, dtype, shape, stride, offset (at "
       "/program/stages/0/0/cost_ns)"},
  });
}

TEST_CASE("a block has a body, and says of itself what it may", "[sim]") {
  const std::string run = "' is no kind of run; expected ";
  const std::string raised = "' is no kind of run and no hook; expected ";
  std::string deep;
  for (int i = 0; i < 64; ++i)
    deep += R"({"no_grad": [)";
  check_statements({
      {R"({"checkpoint": "c"})", "5: 'body' is missing; expected it here" + at_0},
      {R"({"checkpoint": 1, "body": []})",
       "5: this is 1; expected a text (at /program/stages/0/0/checkpoint)"},
      {R"({"checkpoint": "c", "body": {}})",
       "5: this is object; expected a list (at /program/stages/0/0/body)"},
      {R"({"checkpoint": "c", "body": [], "early": true})",
       "5: unknown key 'early'; expected one of checkpoint, in, body, owner, reentrant, "
       "early_stop, "
       "preserve_rng (at /program/stages/0/0/early)"},
      {R"({"unit": "u", "body": [], "early": true})",
       "5: unknown key 'early'; expected one of unit, in, body (at /program/stages/0/0/early)"},
      {R"({"unit": "u", "body": [], "owner": "m"})",
       "5: unknown key 'owner'; expected one of unit, in, body (at /program/stages/0/0/owner)"},
      {R"({"checkpoint": "c", "body": [], "reentrant": 1})",
       "5: this is 1; expected true or false (at /program/stages/0/0/reentrant)"},
      {R"({"checkpoint": "c", "in": ["y"], "body": []})",
       "5: 'y" + not_made + "/program/stages/0/0/in/0)"},
      {"{\"checkpoint\": \"c\", \"body\": [\n{\"op\": \"sin\", \"in\": [\"y\"], \"out\": "
       "[\"z\"]}]}",
       "6: 'y" + not_made + "/program/stages/0/0/body/0/in/0)"},
      {R"({"container": "d", "in": ["y"]})", "5: 'y" + not_made + "/program/stages/0/0/in/0)"},
      {R"({"container": "d"})", "5: 'in' is missing; expected it here" + at_0},
      {R"({"branch": "never", "body": []})",
       "5: 'never" + run + "forward or replay (at /program/stages/0/0/branch)"},
      {R"({"branch": "replay", "body": [{"op": "sin", "in": ["x"], "out": ["y"]}]},
          {"op": "sin", "in": ["y"], "out": ["z"]})",
       "6: 'y" + not_made + "/program/stages/0/1/in/0)"},
      {R"({"no_grad": true})", "5: this is true; expected a list (at /program/stages/0/0/no_grad)"},
      {R"({"no_grad": [], "body": []})",
       "5: unknown key 'body'; expected one of no_grad (at /program/stages/0/0/body)"},
      {R"({"raise": "ValueError", "in": "backward"})",
       "5: 'backward" + raised +
           "forward, replay, always, pack or unpack (at /program/stages/0/0/in)"},
      {R"({"raise": "ValueError", "times": 0})",
       "5: this is 0; expected an integer of 1 or more (at /program/stages/0/0/times)"},
      {R"({"op": "sin", "in": ["x"], "out": ["y"], "dtype": "fp32"})",
       "5: unknown dtype 'fp32'; expected one of f64, f32, bf16, f16, f8, f8e4m3, f8e5m2, c64, "
       "i64, "
       "i32, i16, i8, u8, bool (at /program/stages/0/0/dtype)"},
      {R"({"raise": "ValueError", "in": ["replay"]})",
       "5: this is array; expected a text (at /program/stages/0/0/in)"},
  });
  std::string at = "/program/stages/0";
  for (int i = 0; i < 64; ++i) {
    deep += i == 63 ? "]}" : "";
    at += "/0/no_grad";
  }
  for (int i = 1; i < 64; ++i)
    deep += "]}";
  check_statements(
      {{deep, "5: bodies are nested more than 64 deep; expected fewer (at " + at + ")"}});
}

}  // namespace remat
