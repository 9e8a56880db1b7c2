#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/wrong_scenario.hpp"

// What can be wrong in a scenario beside the program, and in the bodies that it calls.

namespace remat {
namespace {

/// What stands beside the program, on line 3.
void check_settings(const std::vector<WrongScenario>& rows) {
  check(rows,
        "{\"format\": \"rematsim-scenario\", \"version\": 1,\n"
        "\"program\": {\"inputs\": {\"x\": {\"shape\": [4]}}, \"stages\": [[]]},\n",
        "}");
}

/// The actions of three micro-batches, on line 3.
void check_actions(const std::vector<WrongScenario>& rows) {
  check(rows,
        "{\"format\": \"rematsim-scenario\", \"version\": 1,\n"
        "\"program\": {\"stages\": [[]]}, \"schedule\": {\"microbatches\": 3, \"actions\":\n",
        "}}");
}

/// The bodies, on line 2, of a program whose line 3 calls `a` with `x`.
void check_bodies(const std::vector<WrongScenario>& rows) {
  check(rows, "{\"format\": \"rematsim-scenario\", \"version\": 1, \"program\": {\n\"bodies\": ",
        ",\n\"inputs\": {\"x\": {\"shape\": [4]}}, \"stages\": [["
        "{\"call\": \"a\", \"in\": [\"x\"], \"out\": [\"y\"]}]]}}");
}

}  // namespace

TEST_CASE("a protocol is a known one with options of its own", "[sim]") {
  check_settings({
      {R"("protocol": "torch")",
       "3: this is the text \"torch\"; expected an object (at /protocol)"},
      {R"("protocol": {})", "3: 'name' is missing; expected it here (at /protocol)"},
      {R"("protocol": {"name": "megatron"})",
       "3: unknown protocol 'megatron'; expected one of none, torch, torch-reentrant, torch-sac, "
       "exclude, exclude-rederive, remat, kept-ops, kept-callables, markers, offload (at "
       "/protocol/name)"},
      {R"("protocol": {"name": ""})",
       "3: unknown protocol ''; expected one of none, torch, torch-reentrant, torch-sac, exclude, "
       "exclude-rederive, remat, kept-ops, kept-callables, markers, offload (at "
       "/protocol/name)"},
      {R"("protocol": {"name": "torch", "early": true})",
       "3: unknown key 'early'; expected one of name, early_stop, compat, determinism_check, "
       "preserve_rng, allow_cache_entry_mutation, ambient_hooks, boundaries, state_hooks, "
       "dw_tasks, keep, "
       "keep_collectives, keep_every, units, select, sub_models, keeps_any, mode, offload, "
       "recompute_ratio (at "
       "/protocol/early)"},
      {R"("protocol": {"name": "torch", "fault": "refilled_kept"})",  // planted by mutants only
       "3: unknown key 'fault'; expected one of name, early_stop, compat, determinism_check, "
       "preserve_rng, allow_cache_entry_mutation, ambient_hooks, boundaries, state_hooks, "
       "dw_tasks, keep, "
       "keep_collectives, keep_every, units, select, sub_models, keeps_any, mode, offload, "
       "recompute_ratio (at "
       "/protocol/fault)"},
      {R"("protocol": {"name": "torch", "early_stop": "on"})",
       "3: this is the text \"on\"; expected true or false (at /protocol/early_stop)"},
      {R"("protocol": {"name": "torch", "compat": "mindspore"})",
       "3: unknown compat 'mindspore'; expected strict, torch or public (at /protocol/compat)"},
      {R"("protocol": {"name": "exclude-rederive", "boundaries": false})",
       "3: this is false; expected a text (at /protocol/boundaries)"},
      {R"("protocol": {"name": "exclude-rederive", "boundaries": "replay"})",
       "3: unknown boundaries 'replay'; expected both, forward or none (at /protocol/boundaries)"},
      {R"("protocol": {"name": "exclude", "boundaries": "both"})",
       "3: 'exclude' has no boundaries; expected no such option (at /protocol/boundaries)"},
      {R"("protocol": {"name": "remat", "state_hooks": "none"})",
       "3: this is the text \"none\"; expected true or false (at /protocol/state_hooks)"},
      {R"("protocol": {"name": "torch", "dw_tasks": "many"})",
       "3: unknown dw_tasks 'many'; expected one or per_group (at /protocol/dw_tasks)"},
      {R"("protocol": {"name": "torch-sac", "keep": "mm"})",
       "3: this is the text \"mm\"; expected a list (at /protocol/keep)"},
      {R"("protocol": {"name": "torch-sac", "keep": [1]})",
       "3: this is 1; expected a text (at /protocol/keep/0)"},
      {R"("protocol": {"name": "torch", "determinism_check": 0})",
       "3: this is 0; expected true or false (at /protocol/determinism_check)"},
      {R"("protocol": {"name": "torch", "preserve_rng": null})",
       "3: this is null; expected true or false (at /protocol/preserve_rng)"},
      {R"("protocol": {"name": "torch", "allow_cache_entry_mutation": []})",
       "3: this is array; expected true or false (at /protocol/allow_cache_entry_mutation)"},
  });
}

TEST_CASE("a machine has a size and two rates", "[sim]") {
  check_settings({
      {R"("machine": [])", "3: this is array; expected an object (at /machine)"},
      {R"("machine": {"memory": 1})",
       "3: unknown key 'memory'; expected one of memory_bytes, flops_per_second, bytes_per_second, "
       "links (at /machine/memory)"},
      {R"("machine": {"memory_bytes": 0})",
       "3: this is 0; expected an integer of 1 or more (at /machine/memory_bytes)"},
      {R"("machine": {"flops_per_second": 1e14})",
       "3: this is 100000000000000.0; expected an integer of 1 or more (at "
       "/machine/flops_per_second)"},
      {R"("machine": {"bytes_per_second": -5})",
       "3: this is -5; expected an integer of 1 or more (at /machine/bytes_per_second)"},
  });
}

TEST_CASE("steps and seed are integers in their range", "[sim]") {
  check_settings({
      {R"("steps": 0)", "3: this is 0; expected an integer of 1 or more (at /steps)"},
      {R"("steps": 1000001)",
       "3: so many steps are not simulated; expected 1,000,000 or fewer (at /steps)"},
      {R"("steps": 1.5)", "3: this is 1.5; expected an integer of 1 or more (at /steps)"},
      {R"("seed": -1)", "3: this is -1; expected an integer of 0 or more (at /seed)"},
      {R"("seed": 18446744073709551615)",
       "3: this is 18446744073709551615; expected an integer of 0 or more (at /seed)"},
      {R"("seed": "7")", "3: this is the text \"7\"; expected an integer of 0 or more (at /seed)"},
  });
}

TEST_CASE("a schedule has micro-batches and a kind of backward", "[sim]") {
  check_settings({
      {R"("schedule": "1f1b")", "3: this is the text \"1f1b\"; expected an object (at /schedule)"},
      {R"("schedule": {"name": "1f1b"})",
       "3: unknown key 'name'; expected one of microbatches, backward, update, actions (at "
       "/schedule/name)"},
      {R"("schedule": {"microbatches": 0})",
       "3: this is 0; expected an integer of 1 or more (at /schedule/microbatches)"},
      {R"("schedule": {"backward": "half"})",
       "3: unknown backward 'half'; expected full or split (at /schedule/backward)"},
      {R"("schedule": {"update": "yes"})",
       "3: this is the text \"yes\"; expected true or false (at /schedule/update)"},
      {R"("schedule": {"actions": {}})",
       "3: this is object; expected a list (at /schedule/actions)"},
      {R"("schedule": {"actions": [["F0.0"], "B0.0"]})",
       "3: this is the text \"B0.0\"; expected a list (at /schedule/actions/1)"},
  });
}

TEST_CASE("an action is one of a micro-batch that there is, and behind its forward", "[sim]") {
  const auto none = [](const std::string& text, const std::string& at) {
    return "3: '" + text +
           "' is no action; expected F, B, DX or DW with stage 0 and a micro-batch below 3 (F0.1), "
           "UPDATE or ZERO_GRAD (at /schedule/actions" +
           at + ")";
  };
  check_actions({
      {R"([1])", "3: this is 1; expected a text (at /schedule/actions/0)"},
      {R"([""])", none("", "/0")},
      {R"(["X0.0"])", none("X0.0", "/0")},
      {R"(["F0.3"])", none("F0.3", "/0")},
      {R"(["F0.-1"])", none("F0.-1", "/0")},
      {R"(["F0."])", none("F0.", "/0")},
      {R"(["F0.0 "])", none("F0.0 ", "/0")},
      {R"(["F1.0"])", none("F1.0", "/0")},
      {R"(["F0.99999999999999999999"])", none("F0.99999999999999999999", "/0")},
      {R"(["F0.0", "R0.0"])", none("R0.0", "/1")},
      {R"(["update"])", none("update", "/0")},
      {R"([["F0.0"], ["F0.0", "B0"]])", none("B0", "/1/1")},
      {R"([{"action": "Q"}])", none("Q", "/0/action")},
      {R"(["B0.0"])",
       "3: B0.0 comes before the forward of its micro-batch; expected F0.0 earlier in the step (at "
       "/schedule/actions/0)"},
      {"[\"F0.0\",\n\"DX0.1\", \"F0.1\"]",
       "4: DX0.1 comes before the forward of its micro-batch; expected F0.1 earlier in the step "
       "(at "
       "/schedule/actions/1)"},
      {R"([["F0.0"], ["W0.0"]])",
       "3: DW0.0 comes before the forward of its micro-batch; expected F0.0 earlier in the step "
       "(at "
       "/schedule/actions/1/0)"},
      {R"(["F0.0", "DW0.0"])",
       "3: DW0.0 comes before the other half of its backward; expected DX0.0 earlier in the step "
       "(at /schedule/actions/1)"},
      {R"([{"retain": true}])",
       "3: 'action' is missing; expected it here (at /schedule/actions/0)"},
      {R"([{"action": "F0.0", "retian": true}])",
       "3: unknown key 'retian'; expected one of action, retain, group, wrt, catch (at "
       "/schedule/actions/0/retian)"},
      {R"(["F0.0", {"action": "ZERO_GRAD", "catch": true}])",
       "3: this action raises nothing; expected no 'catch' here (at /schedule/actions/1/catch)"},
      {R"([{"action": "F0.0", "catch": "all"}])",
       "3: this is the text \"all\"; expected true or false (at /schedule/actions/0/catch)"},
      {R"([{"action": "F0.0", "retain": 1}])",
       "3: this is 1; expected true or false (at /schedule/actions/0/retain)"},
      {R"([{"action": "F0.0", "group": -1}])",
       "3: this is -1; expected an integer of 0 or more (at /schedule/actions/0/group)"},
  });
}

TEST_CASE("a call names a body with as many inputs and outputs, and ends", "[sim]") {
  const std::string at = " (at /program/stages/0/0";
  check_bodies({
      {R"({})", "3: there is no body 'a'; expected one under /program/bodies" + at + "/call)"},
      {R"([])", "2: this is array; expected an object (at /program/bodies)"},
      {R"({"a": []})", "2: this is array; expected an object (at /program/bodies/a)"},
      {R"({"a": {"in": ["p"], "out": ["q"]}})",
       "2: 'body' is missing; expected it here (at /program/bodies/a)"},
      {R"({"a": {"in": ["p"], "out": ["q"], "body": [], "loss": "q"}})",
       "2: unknown key 'loss'; expected one of in, out, body (at /program/bodies/a/loss)"},
      {R"({"a": {"in": ["p", "q"], "out": ["q"], "body": []}})",
       "3: the call of 'a' has 1 inputs and 1 outputs; expected 2 and 1" + at + ")"},
      {R"({"a": {"in": ["p"], "out": [], "body": []}})",
       "3: the call of 'a' has 1 inputs and 1 outputs; expected 1 and 0" + at + ")"},
      {R"({"a": {"in": ["p"], "out": ["q"], "body": []}})",
       "2: 'q' is used before it is made; expected an input, a parameter or an output of an "
       "earlier statement (at /program/bodies/a/out/0)"},
      {R"({"a": {"in": ["p"], "out": ["p"], "body": [{"call": "a", "in": ["p"], "out": ["q"]}]}})",
       "2: the body 'a' calls itself: a cycle; expected calls of other bodies (at "
       "/program/bodies/a/body/0/call)"},
      {"{\"a\": {\"in\": [\"p\"], \"out\": [\"p\"], \"body\": [{\"call\": \"b\", \"in\": [\"p\"], "
       "\"out\": [\"q\"]}]}, \"b\": {\"in\": [\"p\"], \"out\": [\"p\"],\n\"body\": [{\"unit\": "
       "\"u\", \"body\": [{\"call\": \"a\", \"in\": [\"p\"], \"out\": [\"q\"]}]}]}}",
       "3: the body 'a' calls itself: a cycle; expected calls of other bodies (at "
       "/program/bodies/b/body/0/body/0/call)"},
  });
  CHECK(message_of("{\"format\": \"rematsim-scenario\", \"version\": 1, \"program\": {\"stages\":\n"
                   "[[{\"call\": \"a\", \"in\": [], \"out\": []}]]}}") ==
        "s.json:2: there is no body 'a'; expected one under /program/bodies (at "
        "/program/stages/0/0/call)");
}

TEST_CASE("a body that is called twice, once by another, is no cycle", "[sim]") {
  CHECK(message_of(R"({"format": "rematsim-scenario", "version": 1, "program": {
      "inputs": {"x": {"shape": [4]}},
      "bodies": {"a": {"in": ["p"], "out": ["q"],
                       "body": [{"op": "sin", "in": ["p"], "out": ["q"]}]},
                 "b": {"in": ["p"], "out": ["r"],
                       "body": [{"call": "a", "in": ["p"], "out": ["q"]},
                                {"call": "a", "in": ["q"], "out": ["r"]}]}},
      "stages": [[{"call": "b", "in": ["x"], "out": ["y"]},
                  {"call": "a", "in": ["y"], "out": ["z"]}]]}})") == "no error");
}

}  // namespace remat
