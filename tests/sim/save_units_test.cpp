#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/unit_run.hpp"

// What save units keep, and what is told of those that keep too much or too little.

namespace remat {
namespace {

/// A layer that takes `x` and makes `y`, and its loss.
ScenarioRun run_layer(const std::string& body, const std::string& protocol,
                      const std::string& options) {
  return run_stage(checkpoint("l", body) + "," + loss_of("y"), protocol, options);
}

/// No error, no finding, gradients of the plain run.
void check_sound(const ScenarioRun& run) {
  CHECK(run.code() == "none");
  CHECK(run.broken() == no_texts);
  CHECK(run.result.gradients_match == true);
}

std::int64_t runs_of(const ScenarioRun& run, const std::string& name) {
  return run.ops(name, Phase::forward) + run.ops(name, Phase::replay);
}

const std::string mm_tanh = op("mm", {"x", "w0"}, {"h"}) + "," + op("tanh", {"h"}, {"y"});
/// Four products, with what stands between them.
std::string products(const Texts& before) {
  std::string body;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string from = i == 0 ? "x" : "h" + std::to_string(i);
    const std::string to = i + 1 == before.size() ? "y" : "h" + std::to_string(i + 1);
    body += (i == 0 ? "" : ",") + mark(before[i]) + "," +
            op("mm", {from, "w" + std::to_string(i)}, {to});
  }
  return body;
}

const std::string between = R"("intervals":[["s","e"]])";

}  // namespace

TEST_CASE("kept-ops: the tanh counts 2, 4 and 2", "[sim]") {
  const auto tanhs = [](const std::string& protocol, const std::string& options) {
    const std::string layers =
        checkpoint("a", linear(0, "x", "h") + "," + op("tanh", {"h"}, {"b"})) + "," +
        checkpoint("b", linear(1, "b", "g") + "," + op("tanh", {"g"}, {"y"}));
    const ScenarioRun run = run_stage(layers + "," + loss_of("y"), protocol, options);
    check_sound(run);
    CHECK(warnings(run) == no_texts);
    return runs_of(run, "tanh");
  };
  CHECK(tanhs("none", "") == 2);
  CHECK(tanhs("torch", "") == 4);
  CHECK(tanhs("kept-ops", unit(R"("ops":["aten::tanh"])")) == 2);
}

TEST_CASE(
    "I-45: marks enclose the same ops of one batch and of its halves, however those interleave",
    "[sim]") {
  const auto product = [](const std::string& of) { return op("mm", {"x", "w0"}, {"h" + of}); };
  const auto tanh = [](const std::string& of) { return op("tanh", {"h" + of}, {"t" + of}); };
  const std::string sum = op("add", {"ta", "tb"}, {"y"});
  const auto half = [&](const std::string& of) {
    return mark("s") + "," + product(of) + "," + mark("e") + "," + tanh(of) + ",";
  };
  const ScenarioRun apart = run_layer(half("a") + half("b") + sum, "markers", unit(between));
  check_sound(apart);
  CHECK(decisions(apart) == Texts{"mm T", "tanh F", "mm T", "tanh F", "add F"});
  // The second half's product runs while the first half's interval is open.
  const ScenarioRun mixed =
      run_layer(mark("s") + "," + product("a") + "," + mark("s") + "," + product("b") + "," +
                    mark("e") + "," + tanh("a") + "," + mark("e") + "," + tanh("b") + "," + sum,
                "markers", unit(between));
  check_sound(mixed);
  for (const std::string name : {"mm", "tanh", "add"}) {
    CAPTURE(name);
    CHECK(runs_of(apart, name) == runs_of(mixed, name));
  }
  // A mark moved past the next op encloses another: the counts tell, though the names are the same.
  const ScenarioRun moved = run_layer(
      mark("s") + "," + product("a") + "," + tanh("a") + "," + mark("e") + "," + half("b") + sum,
      "markers", unit(between));
  CHECK(runs_of(moved, "tanh") == runs_of(apart, "tanh") - 1);
}

TEST_CASE("kept-ops skips names that are registered nowhere", "[sim]") {
  const ScenarioRun run = run_layer(mm_tanh, "kept-ops", unit(R"("ops":["vendor::fused","mm"])"));
  check_sound(run);
  CHECK(decisions(run) == Texts{"mm T", "tanh F"});
  CHECK(warnings(run) == no_texts);
}

TEST_CASE("kept-ops: a unit none of whose ops is registered is inert, which each model is told",
          "[sim]") {
  const std::string layers = checkpoint("a", op("sin", {"x"}, {"h"}), R"("owner":"m1")") + "," +
                             checkpoint("b", op("sin", {"h"}, {"i"}), R"("owner":"m1")") + "," +
                             checkpoint("c", op("sin", {"i"}, {"y"}), R"("owner":"m2")") + "," +
                             loss_of("y");
  const ScenarioRun run = run_stage(layers, "kept-ops", unit(R"("ops":["vendor::fused"])"));
  check_sound(run);
  CHECK(warnings(run) == Texts{"W-INERT m1 u", "W-INERT m2 u"});
}

TEST_CASE("kept-callables keeps all that a callable dispatches, but what writes in place",
          "[sim]") {
  const std::string body =
      callable("f", op("mm", {"x", "w0"}, {"h"}) + "," + in_place("scale", "h") + "," +
                        callable("g", op("sin", {"h"}, {"i"}))) +
      "," + op("tanh", {"i"}, {"y"});
  const ScenarioRun run = run_layer(body, "kept-callables", unit(R"("callables":["f"])"));
  CHECK(decisions(run) == Texts{"mm T", "scale F", "sin T", "tanh F"});
  CHECK(warnings(run) == Texts{"W-MUTATING u scale"});
  CHECK(run.code() == "E-MUTATED");  // the product was kept before it was written
}

TEST_CASE("kept-callables: a callable is left when it raises", "[sim]") {
  const std::string body =
      R"({"catch":[)" + callable("f", op("sin", {"x"}, {"h"}) + R"(,{"raise":"E","in":"always"})") +
      "]}," + op("mm", {"x", "w0"}, {"i"}) + "," + op("tanh", {"i"}, {"y"});
  const ScenarioRun run = run_layer(body, "kept-callables", unit(R"("callables":["f"])"));
  check_sound(run);
  CHECK(decisions(run) == Texts{"sin T", "mm F", "tanh F"});
  CHECK(warnings(run) == no_texts);
}

TEST_CASE("kept-callables takes ops by their names too", "[sim]") {
  const std::string body = callable("f", op("mm", {"x", "w0"}, {"h"})) + "," +
                           op("sin", {"h"}, {"i"}) + "," + op("tanh", {"i"}, {"y"});
  const ScenarioRun run =
      run_layer(body, "kept-callables", unit(R"("callables":["f"],"ops":["tanh"])"));
  check_sound(run);
  CHECK(decisions(run) == Texts{"mm T", "sin F", "tanh T"});
}

TEST_CASE("markers keep from the first up to the second, which is no part of it", "[sim]") {
  const std::string body = op("sin", {"x"}, {"a"}) + "," + mark("s") + "," +
                           op("mm", {"a", "w0"}, {"b"}) + "," + op("tanh", {"b"}, {"c"}) + "," +
                           mark("e") + "," + op("sin", {"c"}, {"y"});
  const ScenarioRun run = run_layer(body, "markers", unit(between));
  check_sound(run);
  CHECK(decisions(run) == Texts{"sin F", "mm T", "tanh T", "sin F"});
  CHECK(warnings(run) == no_texts);
  CHECK(runs_of(run, "mm") == 1);
}

TEST_CASE("markers: an interval that ends where it starts never ends", "[sim]") {
  const ScenarioRun run = run_layer(products({"mlp", "x", "mlp", "y"}), "markers",
                                    unit(R"("intervals":[["mlp","mlp"]])", R"("compat":"torch")"));
  check_sound(run);
  CHECK(decisions(run) == Texts{"mm T", "mm T", "mm T", "mm T"});
  CHECK(warnings(run) == Texts{"W-OVER-KEPT u"});
}

TEST_CASE("markers: an end before the start does not end anything", "[sim]") {
  const ScenarioRun run = run_layer(products({"e", "s"}), "markers", unit(between));
  check_sound(run);
  CHECK(decisions(run) == Texts{"mm F", "mm T"});
  CHECK(warnings(run) == Texts{"W-OVER-KEPT u"});
}

TEST_CASE("markers open and close without pairs", "[sim]") {
  SECTION("a second start is none, and one end closes it") {
    const ScenarioRun run = run_layer(products({"s", "s", "e", "e"}), "markers", unit(between));
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "mm T", "mm F", "mm F"});
    CHECK(warnings(run) == no_texts);
  }
  SECTION("intervals of one unit overlap, and know nothing of one another") {
    const ScenarioRun run = run_layer(products({"s", "t", "e", "f"}), "markers",
                                      unit(R"("intervals":[["s","e"],["t","f"]])"));
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "mm T", "mm T", "mm F"});
  }
  SECTION("what one layer left open is closed in the next") {
    const ScenarioRun run =
        run_stage(checkpoint("a", mark("s") + "," + op("mm", {"x", "w0"}, {"h"})) + "," +
                      checkpoint("b", op("mm", {"h", "w1"}, {"y"})) + "," + loss_of("y"),
                  "markers", unit(between));
    check_sound(run);
    CHECK(decisions(run) == Texts{"mm T", "mm F"});
    CHECK(warnings(run) == Texts{"W-OVER-KEPT u"});
  }
}

TEST_CASE("a unit that keeps nothing in any layer of a model is told once of that model", "[sim]") {
  const auto layers = [](const std::string& first, const std::string& second) {
    return checkpoint("a", first + op("mm", {"x", "w0"}, {"h"}), R"("owner":"m1")") + "," +
           checkpoint("b", second + op("mm", {"h", "w1"}, {"i"}), R"("owner":"m1")") + "," +
           checkpoint("c", op("mm", {"i", "w2"}, {"y"}), R"("owner":"m2")") + "," + loss_of("y");
  };
  const ScenarioRun none = run_stage(layers("", ""), "markers", unit(between));
  check_sound(none);
  CHECK(warnings(none) == Texts{"W-UNDER-KEPT m1 u", "W-UNDER-KEPT m2 u"});
  SECTION("one layer that keeps something is enough") {
    const ScenarioRun run =
        run_stage(layers("", mark("s") + "," + op("sin", {"h"}, {"h"}) + "," + mark("e") + ","),
                  "markers", unit(between));
    check_sound(run);
    CHECK(warnings(run) == Texts{"W-UNDER-KEPT m2 u"});
  }
  SECTION("and it is told in the first step and micro-batch only") {
    const ScenarioRun run =
        run_stage(layers("", ""), "markers", unit(between), R"({"microbatches":2})", "{}", "2");
    check_sound(run);
    CHECK(warnings(run) == Texts{"W-UNDER-KEPT m1 u", "W-UNDER-KEPT m2 u"});
  }
}

TEST_CASE("an interval that stays open is told once for each model, however many layers it has",
          "[sim]") {
  const std::string open = mark("s") + ",";
  const std::string layers =
      checkpoint("a", open + op("mm", {"x", "w0"}, {"h"}), R"("owner":"m1")") + "," +
      checkpoint("b", open + op("mm", {"h", "w1"}, {"i"}), R"("owner":"m1")") + "," +
      checkpoint("c", open + op("mm", {"i", "w2"}, {"y"}), R"("owner":"m2")") + "," + loss_of("y");
  const ScenarioRun run = run_stage(layers, "markers", unit(between));
  check_sound(run);
  CHECK(warnings(run) == Texts{"W-OVER-KEPT m1 u", "W-OVER-KEPT m2 u"});
}

TEST_CASE("an op that writes where it was to be kept is told once for each op and model", "[sim]") {
  const auto layer = [](const std::string& name, const std::string& from, const std::string& to,
                        const std::string& owner) {
    return checkpoint(name,
                      op("mm", {from, "w0"}, {"h"}) + "," + in_place("scale", "h") + "," +
                          in_place("scale", "h") + "," + op("tanh", {"h"}, {to}),
                      R"("owner":")" + owner + "\"");
  };
  const std::string layers = layer("a", "x", "i", "m1") + "," + layer("b", "i", "j", "m1") + "," +
                             layer("c", "j", "y", "m2") + "," + loss_of("y");
  const ScenarioRun run = run_stage(layers, "kept-ops", unit(R"("ops":["scale","tanh"])"));
  check_sound(run);
  CHECK(warnings(run) == Texts{"W-MUTATING m1 u scale", "W-MUTATING m2 u scale"});
  CHECK(run.ops("scale", Phase::replay) == 6);
}

TEST_CASE("an op that writes what its unit keeps is told, and is an error at the replay", "[sim]") {
  const std::string body =
      op("mm", {"x", "w0"}, {"h"}) + "," + in_place("scale", "h") + "," + op("tanh", {"h"}, {"y"});
  const ScenarioRun run = run_layer(body, "kept-ops", unit(R"("ops":["mm","scale"])"));
  CHECK(run.code() == "E-MUTATED");
  CHECK(warnings(run) == Texts{"W-MUTATING u scale"});
}

TEST_CASE("markers refuse an op that writes between them", "[sim]") {
  const std::string body = mark("s") + "," + op("mm", {"x", "w0"}, {"h"}) + "," +
                           in_place("scale", "h") + "," + mark("e") + "," +
                           op("tanh", {"h"}, {"y"});
  const ScenarioRun run = run_layer(body, "markers", unit(between));
  REQUIRE(run.code() == "E-STRUCTURE");
  CHECK(run.result.error->message ==
        "scale in l#0 (micro-batch 0, forward) writes in place, and unit u is to keep what it "
        "makes: move the "
        "op out of the unit's markers");
  CHECK(warnings(run) == no_texts);
  SECTION("and leave one alone that writes behind them") {
    const std::string behind = mark("s") + "," + op("sin", {"x"}, {"a"}) + "," + mark("e") + "," +
                               op("mm", {"a", "w0"}, {"h"}) + "," + in_place("scale", "h") + "," +
                               op("tanh", {"h"}, {"y"});
    const ScenarioRun fine = run_layer(behind, "markers", unit(between));
    check_sound(fine);
    CHECK(decisions(fine) == Texts{"sin T", "mm F", "scale F", "tanh F"});
  }
}

TEST_CASE("kept-ops sees into a compiled stretch, callables and markers do not", "[sim]") {
  const std::string inside = compiled(op("mm", {"x", "w0"}, {"h"}));
  const std::string rest = "," + op("tanh", {"h"}, {"y"});
  const ScenarioRun ops = run_layer(inside + rest, "kept-ops", unit(R"("ops":["mm"])"));
  check_sound(ops);
  CHECK(decisions(ops) == Texts{"mm T", "tanh F"});
  CHECK(warnings(ops) == no_texts);
  const ScenarioRun callables =
      run_layer(callable("f", inside) + rest, "kept-callables", unit(R"("callables":["f"])"));
  check_sound(callables);
  CHECK(decisions(callables) == Texts{"tanh F"});
  CHECK(warnings(callables) == Texts{"W-UNDER-KEPT u"});
  const ScenarioRun markers =
      run_layer(mark("s") + "," + inside + "," + mark("e") + rest, "markers", unit(between));
  check_sound(markers);
  CHECK(decisions(markers) == Texts{"tanh F"});
  CHECK(warnings(markers) == Texts{"W-UNDER-KEPT u"});
}

TEST_CASE("markers in a compiled stretch are none", "[sim]") {
  const std::string rest =
      op("mm", {"x", "w0"}, {"h"}) + "," + mark("e") + "," + op("tanh", {"h"}, {"y"});
  const ScenarioRun never = run_layer(compiled(mark("s")) + "," + rest, "markers", unit(between));
  check_sound(never);
  CHECK(decisions(never) == Texts{"mm F", "tanh F"});
  CHECK(warnings(never) == Texts{"W-UNDER-KEPT u"});
  const ScenarioRun open = run_layer(mark("s") + "," + op("mm", {"x", "w0"}, {"h"}) + "," +
                                         compiled(mark("e")) + "," + op("tanh", {"h"}, {"y"}),
                                     "markers", unit(between));
  check_sound(open);
  CHECK(decisions(open) == Texts{"mm T", "tanh T"});
  CHECK(warnings(open) == Texts{"W-OVER-KEPT u"});
}

TEST_CASE("a reentrant region has no policy of its own: the one around it is asked", "[sim]") {
  const std::string inner =
      checkpoint("i", op("mm", {"h", "w1"}, {"j"}) + "," + op("tanh", {"j"}, {"k"}),
                 R"("reentrant":true,"owner":"m2")");
  const std::string body = op("cos", {"x"}, {"h"}) + "," + inner;
  const std::string rest = "," + op("sin", {"k"}, {"y"});
  const ScenarioRun ops =
      run_layer(body + rest, "kept-ops", unit(R"("ops":["mm"])", R"("sub_models":{"m2":false})"));
  check_sound(ops);
  CHECK(decisions(ops) == Texts{"cos F", "mm T", "tanh F", "sin F"});
  CHECK(warnings(ops) == no_texts);
  const ScenarioRun callables =
      run_layer(callable("f", body) + rest, "kept-callables",
                unit(R"("callables":["f"])", R"("sub_models":{"m2":false})"));
  check_sound(callables);
  CHECK(decisions(callables) == Texts{"cos T", "mm T", "tanh T", "sin F"});
}

TEST_CASE("a replay that stops between two markers tells nothing", "[sim]") {
  const std::string body = op("sin", {"x"}, {"h"}) + "," + mark("s") + "," +
                           op("mm", {"h", "w0"}, {"i"}) + "," + op("neg", {"i"}, {"y"}) + "," +
                           mark("e");
  const ScenarioRun run = run_layer(body, "markers", unit(between));
  check_sound(run);
  CHECK(run.kinds(Kind::early_stop) == 1);
  CHECK(run.kinds(Kind::mark) == 3);
  CHECK(warnings(run) == no_texts);
}

TEST_CASE("a pass that raised tells nothing of its units", "[sim]") {
  const std::string body = mark("s") + "," + op("mm", {"x", "w0"}, {"h"}) +
                           R"(,{"raise":"E","in":"forward","times":1},)" + mark("e") + "," +
                           op("tanh", {"h"}, {"y"});
  const ScenarioRun run = run_stage(
      checkpoint("l", body) + "," + loss_of("y"), "markers",
      R"("units":{"u":{"intervals":[["s","e"]]},"v":{"intervals":[["p","q"]]}},"select":["u"])",
      R"({"actions":[{"action":"F0.0","catch":true},"F0.0","B0.0"]})");
  check_sound(run);
  CHECK(warnings(run) == no_texts);
}

TEST_CASE("an exception that the layer's code catches does not silence its units", "[sim]") {
  const std::string body = R"({"catch":[{"raise":"E","in":"always"}]},)" + mm_tanh;
  const ScenarioRun run = run_layer(body, "markers", unit(between));
  check_sound(run);
  CHECK(warnings(run) == Texts{"W-UNDER-KEPT u"});
}

TEST_CASE("what a pass kept and wrote before it raised counts nowhere", "[sim]") {
  const auto run_caught = [](const std::string& body, const std::string& options) {
    const std::string failing =
        R"({"catch":[)" + checkpoint("l", body + R"(,{"raise":"E","in":"forward","times":1})") +
        "]}";
    return run_stage(op("scale", {"x"}, {"y"}) + "," + failing + "," + loss_of("y"), "kept-ops",
                     options);
  };
  const ScenarioRun keeping = run_caught(op("sin", {"x"}, {"h"}), unit(R"("ops":["sin"])"));
  check_sound(keeping);
  CHECK(keeping.kinds(Kind::sac_decide) == 1);
  const ScenarioRun writing =
      run_caught(op("scale", {"x"}, {"h"}) + "," + in_place("neg", "h"), unit(R"("ops":["neg"])"));
  check_sound(writing);
}

}  // namespace remat
