#include "properties/invariants/diagnostics_sound.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/expectations.hpp"
#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Unit `u` as the header has it.
std::string header(const std::string& unit) {
  return R"({"kind":"header","format":"ckpt-trace","version":1,"config":{"units":{"u":)" + unit +
         "}}}\n";
}

const std::string keeps_mm = header(R"({"ops":["mm"],"owners":[""]})");
const std::string keeps_between = header(R"({"intervals":[["s","e"]],"owners":[""]})");

/// Forward of a checkpointed region: two events and those of `body`.
std::string layer(int frame, const std::string& body, const std::string& owner = "",
                  const std::string& ended_by = "return") {
  const std::string number = std::to_string(frame);
  return R"({"kind":"unit_begin","phase":"forward","unit":"L","inv":)" + number + R"(,"frame":)" +
         number + R"(,"exec":"forward","owner":")" + owner + "\"}\n" + body +
         R"({"kind":"unit_end","phase":"forward","unit":"L","frame":)" + number +
         R"(,"exec":"forward","ended_by":")" + ended_by + "\"}\n";
}

/// An op and what the policy says of it: two events.
std::string asked(const std::string& name, bool is_kept, int call = 0) {
  return R"({"kind":"op","phase":"forward","unit":"L","name":")" + name +
         R"(","inputs":[],"outputs":[]})" + "\n" +
         R"({"kind":"sac_decide","phase":"forward","unit":"L","op":")" + name + R"(","idx":)" +
         std::to_string(call) + R"(,"saved":)" + (is_kept ? "true" : "false") +
         R"(,"tensors":[]})" + "\n";
}

/// An op that writes in place, and is not kept: three events.
std::string writes(const std::string& name) {
  return R"({"kind":"op","phase":"forward","unit":"L","name":")" + name +
         R"(","inputs":[],"outputs":[]}
           {"kind":"mutate","phase":"forward","s":1,"op":")" +
         name + R"(","writer":"op"}
           {"kind":"sac_decide","phase":"forward","unit":"L","op":")" +
         name + R"(","idx":0,"saved":false,"tensors":[]})" + "\n";
}

std::string mark(const std::string& name) {
  return R"({"kind":"mark","phase":"forward","name":")" + name + "\"}\n";
}

std::string warning(const std::string& code, const std::string& owner = "",
                    const std::string& op = "") {
  return R"({"kind":"warning","phase":"forward","code":")" + code + R"(","owner":")" + owner +
         R"(","unit":"u")" + (op.empty() ? "" : R"(,"op":")" + op + "\"") + R"(,"message":"m"})" +
         "\n";
}

std::string callable(const std::string& body) {
  return R"({"kind":"unit_begin","phase":"forward","unit":"f","exec":"forward","checkpointed":false})" +
         std::string("\n") + body +
         R"({"kind":"unit_end","phase":"forward","unit":"f","exec":"forward","checkpointed":false})" +
         "\n";
}

/// A forward phase and the end of its step: a first event, those of `body`, and two.
std::string step(const std::string& body) {
  return R"({"kind":"phase_begin","phase":"forward"})" + std::string("\n") + body +
         R"({"kind":"phase_end","phase":"forward"}
           {"kind":"step_end"})" +
         "\n";
}

Findings found(const std::string& trace) {
  return checked(trace).findings;
}

}  // namespace

TEST_CASE("diagnostics_sound is content where units keep what they stand for",
          "[invariants][diagnostics_sound]") {
  CHECK(found(keeps_mm + step(layer(1, asked("mm", true)))) == no_findings);
  CHECK(found(keeps_between + step(layer(1, mark("s") + asked("mm", true) + mark("e")))) ==
        no_findings);
  CHECK(found(header(R"({"callables":["f"],"owners":[""]})") +
              step(layer(1, callable(asked("mm", true))))) == no_findings);
  SECTION("one layer of several is enough") {
    CHECK(found(keeps_mm + step(layer(1, asked("sin", false)) + layer(2, asked("mm", true)))) ==
          no_findings);
  }
  SECTION("a unit that no model selects has nothing to tell") {
    CHECK(found(header(R"({"ops":["mm"],"owners":[]})") + step(layer(1, asked("sin", false)))) ==
          no_findings);
    CHECK(found(header(R"({"owners":[]})") + step(layer(1, asked("sin", false)))) == no_findings);
  }
}

TEST_CASE("diagnostics_sound names a unit that kept nothing, and a word that is missing about it",
          "[invariants][diagnostics_sound]") {
  CHECK(found(keeps_mm + step(layer(1, asked("sin", false)))) ==
        Findings{{"diagnostics_sound",
                  7,
                  "W-UNDER-KEPT of unit u of the model is not told, and event 6 shows it; expected "
                  "one warning",
                  {6, 7}}});
  CHECK(found(keeps_mm + step(layer(1, asked("sin", false)) + warning("W-UNDER-KEPT"))) ==
        no_findings);
}

TEST_CASE("diagnostics_sound names an interval that never closed without a word about it",
          "[invariants][diagnostics_sound]") {
  const std::string open = layer(1, mark("e") + mark("s") + asked("mm", true));
  CHECK(found(keeps_between + step(open)) ==
        Findings{{"diagnostics_sound",
                  9,
                  "W-OVER-KEPT of unit u of the model is not told, and event 7 shows it; expected "
                  "one warning",
                  {7, 9}}});
  CHECK(found(keeps_between + step(open + warning("W-OVER-KEPT"))) == no_findings);
}

TEST_CASE("diagnostics_sound names an op that wrote where it was to be kept, each for itself",
          "[invariants][diagnostics_sound]") {
  const std::string scale = header(R"({"ops":["scale","mm"],"owners":[""]})");
  const std::string body = layer(1, writes("scale") + asked("mm", true));
  CHECK(found(scale + step(body)) ==
        Findings{{"diagnostics_sound",
                  10,
                  "W-MUTATING of unit u of the model for op scale is not told, and event 5 shows "
                  "it; expected one warning",
                  {5, 10}}});
  CHECK(found(scale + step(body + warning("W-MUTATING", "", "scale"))) == no_findings);
  SECTION("what changes no value is none of them") {
    const std::string stream = header(R"({"ops":["record_stream","mm"],"owners":[""]})");
    CHECK(found(stream + step(layer(1, writes("record_stream") + asked("mm", true)))) ==
          no_findings);
  }
  SECTION("nor is one that no unit asks for") {
    CHECK(found(keeps_mm + step(body)) == no_findings);
  }
}

TEST_CASE("diagnostics_sound counts what a region keeps for a callable around it",
          "[invariants][diagnostics_sound]") {
  const std::string unit = header(R"({"callables":["f"],"owners":[""]})");
  CHECK(found(unit + step(callable(layer(1, asked("mm", true))))) == no_findings);
  const std::string told = warning("W-UNDER-KEPT");
  CHECK(found(unit + step(callable("") + layer(1, asked("mm", true)) + told)) == no_findings);
  CHECK(found(unit + step(callable(layer(1, asked("mm", true))) + told)) ==
        Findings{{"diagnostics_sound",
                  10,
                  "W-UNDER-KEPT of unit u of the model is told, and nothing that ran shows it; "
                  "expected no warning",
                  {8, 10}}});
}

TEST_CASE("diagnostics_sound wants to hear of a unit whose model checkpoints no layer",
          "[invariants][diagnostics_sound]") {
  const std::string unit = R"({"ops":["mm"],"owners":["m","n"],"without_layers":["n"]})";
  const std::string body = layer(1, asked("mm", true), "m");
  CHECK(found(header(unit) + step(body)) ==
        Findings{{"diagnostics_sound",
                  7,
                  "W-IGNORED of unit u of model n is not told, and event 0 shows it; expected one "
                  "warning",
                  {0, 7}}});
  CHECK(found(header(unit) + step(body + warning("W-IGNORED", "n"))) == no_findings);
  CHECK_THROWS_AS(found(header(R"({"owners":[],"without_layers":1})")), HeaderError);
}

TEST_CASE("diagnostics_sound wants to hear of a unit that stands for nothing, or is ignored",
          "[invariants][diagnostics_sound]") {
  const std::string inert = header(R"({"owners":[""]})");
  CHECK(found(inert + step(layer(1, ""))) ==
        Findings{{"diagnostics_sound",
                  5,
                  "W-INERT of unit u of the model is not told, and event 0 shows it; expected one "
                  "warning",
                  {0, 5}}});
  CHECK(found(inert + warning("W-INERT") + step(layer(1, ""))) == no_findings);
  const std::string ignored = header(R"({"ops":["mm"],"owners":[""],"ignored":true})");
  CHECK(found(ignored + step(layer(1, ""))) ==
        Findings{{"diagnostics_sound",
                  5,
                  "W-IGNORED of unit u of the model is not told, and event 0 shows it; expected "
                  "one warning",
                  {0, 5}}});
  CHECK(found(ignored + warning("W-IGNORED") + step(layer(1, ""))) == no_findings);
}

TEST_CASE("diagnostics_sound names what is told twice", "[invariants][diagnostics_sound]") {
  const std::string under = layer(1, asked("sin", false)) + warning("W-UNDER-KEPT");
  CHECK(found(keeps_mm + step(under + warning("W-UNDER-KEPT"))) ==
        Findings{{"diagnostics_sound",
                  7,
                  "W-UNDER-KEPT of unit u of the model is told again, after event 6; expected it "
                  "once",
                  {6, 7}}});
  SECTION("in the next step too, which may stay silent") {
    CHECK(found(keeps_mm + step(under) + step(layer(2, asked("sin", false)))) == no_findings);
    CHECK(found(keeps_mm + step(under) + step(under)) ==
          Findings{{"diagnostics_sound",
                    14,
                    "W-UNDER-KEPT of unit u of the model is told again, after event 6; expected "
                    "it once",
                    {6, 14}}});
  }
}

TEST_CASE("diagnostics_sound names what is told of nothing", "[invariants][diagnostics_sound]") {
  CHECK(found(keeps_mm + step(layer(1, asked("mm", true)) + warning("W-UNDER-KEPT"))) ==
        Findings{{"diagnostics_sound",
                  8,
                  "W-UNDER-KEPT of unit u of the model is told, and nothing that ran shows it; "
                  "expected no warning",
                  {6, 8}}});
  SECTION("a warning of another kind is not its business") {
    CHECK(found(keeps_mm + step(layer(1, asked("mm", true)) + warning("W-SLOW"))) == no_findings);
  }
}

TEST_CASE("diagnostics_sound wants a word for each model", "[invariants][diagnostics_sound]") {
  const std::string both = header(R"({"ops":["mm"],"owners":["a","b"]})");
  const std::string layers = layer(1, "", "a") + layer(2, "", "b");
  CHECK(found(both + step(layers + warning("W-UNDER-KEPT", "a") + warning("W-UNDER-KEPT", "b"))) ==
        no_findings);
  CHECK(found(both + step(layers + warning("W-UNDER-KEPT", "a"))) ==
        Findings{{"diagnostics_sound",
                  8,
                  "W-UNDER-KEPT of unit u of model b is not told, and event 7 shows it; expected "
                  "one warning",
                  {7, 8}}});
  SECTION("a model none of whose layers ran has nothing to tell") {
    CHECK(found(both + step(layer(1, "", "a") + warning("W-UNDER-KEPT", "a"))) == no_findings);
  }
}

TEST_CASE("diagnostics_sound passes over a pass that did not get to its end",
          "[invariants][diagnostics_sound]") {
  const std::string open = mark("s") + asked("mm", true);
  SECTION("stopped early") {
    CHECK(found(keeps_between + step(layer(1, open, "", "_StopRecomputationError"))) ==
          no_findings);
  }
  SECTION("or by an error") {
    CHECK(found(keeps_between + step(layer(1, open, "", "builtins.RuntimeError"))) == no_findings);
    const std::string caught = R"({"kind":"error","phase":"forward","code":"E","caught":true})";
    CHECK(found(keeps_mm + step(layer(1, asked("sin", false)) + caught + "\n")) == no_findings);
  }
  SECTION("and a replay, which decides nothing") {
    const std::string replay = R"(
      {"kind":"unit_begin","phase":"replay","unit":"L","inv":1,"frame":1,"exec":"replay"}
      {"kind":"mark","phase":"replay","name":"s"}
      {"kind":"unit_end","phase":"replay","unit":"L","frame":1,"exec":"replay","ended_by":"return"}
    )";
    const std::string forward = layer(1, mark("s") + asked("mm", true) + mark("e"));
    CHECK(found(keeps_between + step(forward + replay)) == no_findings);
  }
}

TEST_CASE("diagnostics_sound says what it needs", "[invariants][diagnostics_sound]") {
  CHECK(needs(checked(step(layer(1, asked("mm", true)))), "diagnostics_sound") ==
        "config.units in the header: the save units asked for");
  CHECK(needs(checked(keeps_mm + step(layer(1, asked("mm", true)))), "diagnostics_sound").empty());
}

TEST_CASE("diagnostics_sound refuses a header whose units have another form",
          "[invariants][diagnostics_sound]") {
  const auto refused = [](const std::string& unit) -> std::string {
    try {
      checked(header(unit));
    } catch (const HeaderError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string form = "the header's save units are of another form (at /config/units";
  CHECK(refused("[]") == form + "/u); expected an object");
  CHECK(refused(R"({"ops":"mm"})") == form + "/u/ops); expected a list of names");
  CHECK(refused(R"({"owners":[1]})") == form + "/u/owners); expected a list of names");
  CHECK(refused(R"({"intervals":[["s"]]})") == form + "/u/intervals); expected pairs of markers");
  CHECK(refused(R"({"intervals":[["s",1]]})") == form + "/u/intervals); expected pairs of markers");
  CHECK(refused(R"({"intervals":1})") == form + "/u/intervals); expected pairs of markers");
  CHECK(refused(R"({"owners":[],"ignored":1})") == form + "/u/ignored); expected true or false");
}

TEST_CASE("diagnostics_sound tells what each rank is at apart, and wants a warning once",
          "[invariants][diagnostics_sound]") {
  const auto on = [](int rank, std::string events) {
    const std::string to = R"({"rank":)" + std::to_string(rank) + ",";
    for (std::size_t at = events.find("{\"kind\""); at != std::string::npos;
         at = events.find("{\"kind\"", at + to.size()))
      events.replace(at, 1, to);
    return events;
  };
  const std::string forward_ends = "{\"kind\":\"phase_end\",\"phase\":\"forward\"}\n";
  const std::string step_ends = "{\"kind\":\"step_end\"}\n";
  // Rank 1 begins its layer in the middle of rank 0's, which keeps and so needs no warning.
  const std::string kept = layer(0, asked("mm", true));
  const std::size_t middle = kept.find('\n') + 1;
  const std::string interleaved = on(0, kept.substr(0, middle)) +
                                  on(1, layer(1, asked("mm", true))) + on(0, kept.substr(middle));
  CHECK(checked(keeps_mm + interleaved + on(0, forward_ends) + on(1, forward_ends) +
                on(0, step_ends) + on(1, step_ends))
            .findings.empty());
  // Neither keeps: one warning for both.
  const std::string nothing =
      on(0, layer(0, asked("add", false))) + on(1, layer(1, asked("add", false)));
  const std::string ends = on(0, forward_ends) + on(1, forward_ends);
  const std::string steps = on(0, step_ends) + on(1, step_ends);
  CHECK(
      checked(keeps_mm + nothing + ends + on(1, warning("W-UNDER-KEPT")) + steps).findings.empty());
  CHECK(checked(keeps_mm + nothing + ends + steps).findings.size() == 1);
}

TEST_CASE("diagnostics_sound wants no warning of a collective that writes in place",
          "[invariants][diagnostics_sound]") {
  const std::string header_of = header(R"({"ops":["all_gather","scale"],"owners":[""]})");
  const std::string step_ends = "{\"kind\":\"step_end\"}\n";
  CHECK(checked(header_of + layer(0, writes("all_gather")) + step_ends).findings.empty());
  CHECK(checked(header_of + layer(0, writes("scale")) + step_ends).findings.size() == 1);
}
