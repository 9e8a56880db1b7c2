#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/wrong_scenario.hpp"

// What can be wrong in what a scenario says of save units.

namespace remat {
namespace {

/// What stands in the protocol object behind its name, on line 3.
void check_protocol(const std::string& name, const std::vector<WrongScenario>& rows) {
  check(rows,
        "{\"format\": \"rematsim-scenario\", \"version\": 1,\n"
        "\"program\": {\"inputs\": {\"x\": {\"shape\": [4]}}, \"stages\": [[]]},\n"
        "\"protocol\": {\"name\": \"" +
            name + "\", ",
        "}}");
}

/// A statement, on line 3.
void check_statement(const std::vector<WrongScenario>& rows) {
  check(rows,
        "{\"format\": \"rematsim-scenario\", \"version\": 1,\n"
        "\"program\": {\"inputs\": {\"x\": {\"shape\": [4]}}, \"stages\": [[\n",
        "]]}}");
}

std::string no_use(const std::string& protocol, const std::string& what, const std::string& at) {
  return "3: protocol " + protocol + " has no use for " + what +
         "; expected another protocol: kept-ops takes ops, kept-callables ops and callables, "
         "markers intervals (at /protocol/" +
         at + ")";
}

}  // namespace

TEST_CASE("a save unit that is asked for is one that there is", "[sim]") {
  check_protocol(
      "kept-ops",
      {
          {R"("units": {"a": {"ops": ["mm"]}, "b": {"ops": ["sin"]}}, "select": ["a", "c"])",
           "3: there is no save unit 'c'; expected one of a, b (at /protocol/select/1)"},
          {R"("select": ["c"])",
           "3: there is no save unit 'c'; expected one of those under 'units', of which there are "
           "none (at /protocol/select/0)"},
          {R"("units": {"a": {"ops": ["mm"]}}, "sub_models": {"m": ["b"]})",
           "3: there is no save unit 'b'; expected one of a (at /protocol/sub_models/m/0)"},
          {R"("select": "all")",
           "3: this is the text \"all\"; expected true or false (at "
           "/protocol/select)"},
          {R"("units": {"a": {"ops": ["mm"]}}, "select": [1])",
           "3: this is 1; expected a text (at /protocol/select/0)"},
          {R"("sub_models": [])", "3: this is array; expected an object (at /protocol/sub_models)"},
      });
}

TEST_CASE("a save unit stands for what its protocol can see", "[sim]") {
  check_protocol("markers", {
                                {R"("units": {"u": {"ops": ["mm"]}})",
                                 no_use("markers", "ops", "units/u/ops")},
                                {R"("units": {"u": {"callables": ["f"]}})",
                                 no_use("markers", "callables", "units/u/callables")},
                            });
  check_protocol("kept-ops", {
                                 {R"("units": {"u": {"intervals": [["s", "e"]]}})",
                                  no_use("kept-ops", "intervals", "units/u/intervals")},
                                 {R"("units": {"u": {"callables": ["f"]}})",
                                  no_use("kept-ops", "callables", "units/u/callables")},
                             });
  check_protocol("kept-callables", {
                                       {R"("units": {"u": {"intervals": [["s", "e"]]}})",
                                        no_use("kept-callables", "intervals", "units/u/intervals")},
                                   });
}

TEST_CASE("a model with a selection of its own is one that there is", "[sim]") {
  const std::string units = R"("units": {"a": {"ops": ["mm"]}}, "select": true, )";
  const auto scenario = [&](const std::string& sub_models) {
    return R"({"format": "rematsim-scenario", "version": 1, "program": {"stages": [[)"
           R"({"checkpoint": "a", "body": [{"unit": "u", "body": []}]},)"
           R"({"checkpoint": "b", "owner": "tower", "body": []}]]},)"
           "\n\"protocol\": {\"name\": \"kept-ops\", " +
           units + "\n\"sub_models\": " + sub_models + "}}";
  };
  CHECK(message_of(scenario(R"({"tower": false, "": true})")) == "no error");
  CHECK(message_of(scenario(R"({"tower": false, "towel": ["a"]})")) ==
        "s.json:3: no checkpointed region is a layer of a model 'towel'; expected one of '' "
        "(regions without an owner), 'tower' (at /protocol/sub_models/towel)");
  CHECK(message_of(scenario(R"({"u": true})")) ==
        "s.json:3: no checkpointed region is a layer of a model 'u'; expected one of '' (regions "
        "without an owner), 'tower' (at /protocol/sub_models/u)");
}

TEST_CASE("a reentrant region is not one of a model that selects save units", "[sim]") {
  const auto scenario = [](const std::string& owner, const std::string& protocol) {
    return R"({"format": "rematsim-scenario", "version": 1, "program": {"stages": [[)"
           "\n{\"checkpoint\": \"a\", \"reentrant\": true, " +
           owner + R"("body": []}]]}, "protocol": {"name": )" + protocol + "}}";
  };
  const std::string units = R"("kept-ops", "units": {"u": {"ops": ["mm"]}}, "select": true)";
  const std::string tower = R"("owner": "tower", )";
  const std::string refused =
      "s.json:2: a reentrant region keeps nothing for its replay, and save units are selected for ";
  CHECK(message_of(scenario("", units)) ==
        refused +
            "its model; expected false, or no selection for the model (at "
            "/program/stages/0/0/reentrant)");
  CHECK(message_of(scenario(tower, units)) ==
        refused +
            "its model 'tower'; expected false, or no selection for the model (at "
            "/program/stages/0/0/reentrant)");
  for (const std::string& none :
       {units + R"(, "sub_models": {"tower": false})", units + R"(, "keeps_any": false)",
        std::string(R"("kept-ops")"), std::string(R"("torch")")}) {
    CAPTURE(none);
    CHECK(message_of(scenario(tower, none)) == "no error");
  }
}

TEST_CASE("a ratio of recomputed layers is a number from 0 to 1, of a model that there is",
          "[sim]") {
  const auto wants = [](const std::string& what, const std::string& at = "") {
    return "4: this is " + what + "; expected a number from 0 to 1 (at /protocol/recompute_ratio" +
           at + ")";
  };
  check(
      {
          {"-0.5", wants("-0.5")},
          {"1.5", wants("1.5")},
          {"2", wants("2")},
          {R"("half")", wants("the text \"half\"")},
          {"true", wants("true")},
          {"[0.5]", wants("array")},
          {R"({"tower": 0.5, "": -1})", wants("-1", "/")},
          {R"({"tower": null})", wants("null", "/tower")},
          {R"({"towel": 0.5})",
           "4: no checkpointed region is a layer of a model 'towel'; expected one of '' (regions "
           "without an owner), 'tower' (at /protocol/recompute_ratio/towel)"},
      },
      R"({"format": "rematsim-scenario", "version": 1, "program": {"stages": [[)"
      R"({"checkpoint": "a", "body": []}, {"checkpoint": "b", "owner": "tower", "body": []}]]},)"
      "\n\"protocol\": {\"name\": \"torch\",\n\n\"recompute_ratio\": ",
      "}}");
  check_protocol("torch", {{R"("recompute_ratio": {"": 1})",
                            "3: no checkpointed region is a layer of a model ''; expected none, as "
                            "the program has no checkpointed region (at "
                            "/protocol/recompute_ratio/)"}});
}

TEST_CASE("a protocol without save units has no use for their keys", "[sim]") {
  for (const char* name : {"torch", "torch-sac", "none", "exclude-rederive", "remat"}) {
    CAPTURE(name);
    check_protocol(name, {
                             {R"("units": {})", no_use(name, "save units", "units")},
                             {R"("select": true)", no_use(name, "save units", "select")},
                             {R"("sub_models": {})", no_use(name, "save units", "sub_models")},
                             {R"("keeps_any": true)", no_use(name, "save units", "keeps_any")},
                             {R"("mode": "unified")", no_use(name, "save units", "mode")},
                         });
  }
}

TEST_CASE("what save units keep is not asked for op by op", "[sim]") {
  for (const std::string name : {"kept-ops", "kept-callables", "markers"}) {
    CAPTURE(name);
    const std::string message =
        "3: protocol " + name + " keeps what its units ask for; expected units (at /protocol/";
    check_protocol(name, {
                             {R"("keep": ["mm"])", message + "keep)"},
                             {R"("keep_every": 2)", message + "keep_every)"},
                         });
  }
}

TEST_CASE("a save unit's interval has two markers", "[sim]") {
  check_protocol(
      "markers",
      {
          {R"("units": {"u": {"intervals": [["s", "s"]]}})",
           "3: the interval begins and ends at 's', so that it never ends; expected two markers "
           "(at "
           "/protocol/units/u/intervals/0)"},
          {R"("units": {"u": {"intervals": [["s", "e"], ["a", "b", "c"]]}})",
           "3: an interval of 3 markers; expected the one that begins it and the one that ends it "
           "(at /protocol/units/u/intervals/1)"},
          {R"("units": {"u": {"intervals": [[]]}})",
           "3: an interval of 0 markers; expected the one that begins it and the one that ends it "
           "(at /protocol/units/u/intervals/0)"},
          {R"("units": {"u": {"intervals": ["s"]}})",
           "3: this is the text \"s\"; expected a list (at /protocol/units/u/intervals/0)"},
          {R"("units": {"u": {"intervals": [["s", 1]]}})",
           "3: this is 1; expected a text (at /protocol/units/u/intervals/0/1)"},
      });
  CHECK(message_of(R"({"format": "rematsim-scenario", "version": 1, "program": {"stages": [[]]},
      "protocol": {"compat": "torch", "units": {"u": {"intervals": [["s", "s"]]}},
                   "name": "markers"}})") == "no error");
}

TEST_CASE("a save unit and how it is kept have a known form", "[sim]") {
  check_protocol(
      "kept-ops",
      {
          {R"("units": [])", "3: this is array; expected an object (at /protocol/units)"},
          {R"("units": {"u": []})", "3: this is array; expected an object (at /protocol/units/u)"},
          {R"("units": {"u": {"op": ["mm"]}})",
           "3: unknown key 'op'; expected one of ops, callables, intervals (at "
           "/protocol/units/u/op)"},
          {R"("units": {"u": {"ops": "mm"}})",
           "3: this is the text \"mm\"; expected a list (at /protocol/units/u/ops)"},
          {R"("units": {"u": {"ops": [1]}})",
           "3: this is 1; expected a text (at /protocol/units/u/ops/0)"},
          {R"("keeps_any": "no")",
           "3: this is the text \"no\"; expected true or false (at /protocol/keeps_any)"},
          {R"("mode": "fast")",
           "3: unknown mode 'fast'; expected unified or by_selection (at /protocol/mode)"},
          {R"("mode": true)", "3: this is true; expected a text (at /protocol/mode)"},
      });
}

TEST_CASE("a marker, a compiled stretch and a model's name have a known form", "[sim]") {
  check_statement({
      {R"({"mark": 1})", "3: this is 1; expected a text (at /program/stages/0/0/mark)"},
      {R"({"mark": "s", "in": []})",
       "3: unknown key 'in'; expected one of mark (at /program/stages/0/0/in)"},
      {R"({"compiled": {}})",
       "3: this is object; expected a list (at /program/stages/0/0/compiled)"},
      {R"({"compiled": [], "body": []})",
       "3: unknown key 'body'; expected one of compiled (at /program/stages/0/0/body)"},
      {R"({"checkpoint": "l", "owner": 1, "body": []})",
       "3: this is 1; expected a text (at /program/stages/0/0/owner)"},
  });
}

}  // namespace remat
