#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/scenario_run.hpp"

// What the message of a run's error names (protocols.md §1.2): wrapper and call, input path, region
// and invocation, micro-batch, phase.

namespace remat {
namespace {

std::string message_of(const ScenarioRun& run) {
  return run.result.error ? run.result.error->code + ": " + run.result.error->message : "none";
}

/// Two micro-batches; the second one's backward is the first to run.
const std::string second = R"({"microbatches":2,"actions":["F0.0","F0.1","B0.1"]})";

std::string message_of(const std::string& stage, const std::string& protocol,
                       const std::string& options = "", const std::string& schedule = second) {
  return message_of(run_stage(stage, protocol, options, schedule));
}

std::string excluded(const std::string& name, const std::string& body,
                     const std::string& more = "") {
  return R"({"exclude":")" + name + R"(",)" + more + R"("body":[)" + body + "]}";
}
std::string only_in(const std::string& run, const std::string& body) {
  return R"({"branch":")" + run + R"(","body":[)" + body + "]}";
}
std::string unseen_write(const std::string& name) {
  return R"({"no_grad":[{"in_place":"scale","in":[")" + name + R"("]}]})";
}
std::string region(const std::string& body, const std::string& more = "") {
  return checkpoint("r", body, more) + "," + loss_of("y");
}
std::string joined(const std::vector<std::string>& statements) {
  std::string text;
  for (const std::string& statement : statements)
    text += (text.empty() ? "" : ",") + statement;
  return text;
}

const std::string raises = R"({"raise":"ValueError")";

}  // namespace

TEST_CASE(
    "an error of an excluded region names wrapper, call, input, region, micro-batch and phase",
    "[sim]") {
  const std::string a = op("scale", {"x"}, {"a"});
  const std::string y = op("sin", {"a"}, {"y"});
  const std::string mask = R"("kwargs":{"mask":["a"]},"out":["y"],)";
  // The gradient enters the body by e, which passes no boundary: nothing asks for a replay.
  CHECK(
      message_of(
          checkpoint("r", joined({a, excluded("w", joined({y, op("cos", {"a"}, {"e"})}), mask)})) +
              "," + loss_of("e"),
          "exclude-rederive") ==
      "E-SLOT-EMPTY: slot x3 of wrapper w#0 in r#1 (micro-batch 1, backward), input "
      "kwarg.mask[0]: the replay has not reached the wrapper: it was not started");
  CHECK(message_of(region(joined({a, excluded("w", y, mask), unseen_write("a")})),
                   "exclude-rederive", R"("early_stop":false)") ==
        "E-SLOT-STALE: slot x1 of wrapper w#0 in r#1 (micro-batch 1, backward), input "
        "kwarg.mask[0]: it was overwritten after the replay filled it (version 0 to 1)");
  CHECK(
      message_of(region(joined({a, excluded("w", joined({y, raises + "}"}), mask)})), "exclude") ==
      "E-USER: wrapper w#0 in r#0 (micro-batch 0, forward): raised by the body's own code");
  CHECK(message_of(region(joined({op("sin", {"x"}, {"a"}), excluded("w", y, mask),
                                  only_in("replay", excluded("w", op("sin", {"a"}, {"z"}),
                                                             R"("out":["z"],)"))})),
                   "exclude", R"("early_stop":false)") ==
        "E-CACHE-MISS: wrapper w#1 in r#1 (micro-batch 1, replay): no forward entry; the replay "
        "ran 2 calls, forward 1");
}

TEST_CASE("an error of placeholders and of nesting names the excluded regions", "[sim]") {
  const std::string unkept = excluded("w", op("sin", {"x"}, {"y"}), R"("save_output":false,)");
  CHECK(message_of(checkpoint("r", unkept + "," + op("tanh", {"y"}, {"z"})) + "," + loss_of("z"),
                   "exclude-rederive") ==
        "E-PLACEHOLDER: tanh reads the placeholder of wrapper w#0 in r#0 (micro-batch 0, forward) "
        "output 0; set save_output or mark the consumer");
  const std::string inner = excluded("inner", op("sin", {"x"}, {"y"}));
  CHECK(
      message_of(region(excluded("outer", inner)), "exclude-rederive") ==
      "E-SESSION: wrapper inner#0 in r#0 (micro-batch 0, forward) is called inside wrapper outer: "
      "excluded regions do not nest");
}

TEST_CASE("an error of a selective region's cache names op, region and micro-batch", "[sim]") {
  const std::string kept = op("tanh", {"x"}, {"h"}, R"("keep":true)");
  const std::string y = op("sin", {"h"}, {"y"});
  CHECK(message_of(
            region(joined({only_in("replay", op("abs", {"x"}, {"q"}, R"("keep":true)")), kept, y})),
            "torch-sac") ==
        "E-CACHE-MISS: call 0 of abs in r#1 (micro-batch 1, replay): encountered during backward "
        "but not found in storage");
  CHECK(message_of(region(joined({kept, y})), "torch-sac", "",
                   R"({"microbatches":2,"actions":["F0.0","F0.1",)"
                   R"({"action":"B0.1","retain":true},"B0.1"]})") ==
        "E-TWICE: call 0 of tanh in r#1 (micro-batch 1, replay): trying to backward an extra time "
        "through a selective region");
  CHECK(message_of(region(joined({kept, op("mul", {"h", "h"}, {"y"}), unseen_write("h")})),
                   "torch-sac") ==
        "E-MUTATED: call 0 of tanh in r#1 (micro-batch 1, replay): its kept output has been "
        "written since");
}

TEST_CASE("an error of what was saved names the code that saved it", "[sim]") {
  const std::string saved = joined({op("sin", {"x"}, {"h"}), op("mul", {"h", "h"}, {"y"})});
  CHECK(message_of(region(joined({saved, unseen_write("h")})), "none") ==
        "E-MUTATED: 'h', saved for backward by r (micro-batch 1, backward), has been modified by "
        "an inplace operation: it is at version 1, saved at 0");
  CHECK(message_of(joined({saved, unseen_write("h"), loss_of("y")}), "none") ==
        "E-MUTATED: 'h', saved for backward by code outside regions (micro-batch 1, backward), has "
        "been modified by an inplace operation: it is at version 1, saved at 0");
  CHECK(message_of(region(excluded("w", joined({saved, unseen_write("h")}))), "exclude") ==
        "E-MUTATED: 'h', saved for backward by wrapper w#0 in r#1 (micro-batch 1, backward), has "
        "been modified by an inplace operation: it is at version 1, saved at 0");
  CHECK(message_of(
            joined({op("scale", {"x"}, {"a"}), region(op("sin", {"a"}, {"y"})), unseen_write("a")}),
            "torch") ==
        "E-MUTATED: 'a', saved for backward by r#1 (micro-batch 1, backward), has been modified by "
        "an inplace operation: it is at version 1, saved at 0");
  CHECK(message_of(joined({saved, loss_of("y")}), "none", "",
                   R"({"microbatches":2,"actions":["F0.0","F0.1","B0.1","B0.1"]})") ==
        "E-TWICE: mul of code outside regions (micro-batch 1, backward): trying to backward "
        "through the graph a second time, its saved tensors have been freed");
}

TEST_CASE("an error of a region's replay names region, invocation, micro-batch and phase",
          "[sim]") {
  const std::string a = op("tanh", {"x"}, {"a"});
  const std::string y = op("tanh", {"a"}, {"y"});
  const std::string more = op("abs", {"x"}, {"q"});
  const auto run = [&](const std::string& body, const std::string& options = "") {
    return message_of(region(body), "torch", options);
  };
  CHECK(run(joined({a, y, raises + R"(,"in":"replay"})"}), R"("early_stop":false)") ==
        "E-USER: r#1 (micro-batch 1, replay): raised by the body's own code");
  CHECK(run(joined({only_in("forward", more), a, y})) ==
        "E-COUNT: r#1 (micro-batch 1, backward): forward saved 3 tensors, the replay 2");
  CHECK(run(joined({only_in("replay", more), a, y}), R"("early_stop":false)") ==
        "E-MORE: r#1 (micro-batch 1, replay): the replay saves more than the 2 tensors of "
        "forward");
  const auto two = [](const std::string& last) {
    return joined({op("sin", {"x"}, {"h"}), op("sin", {"h"}, {"k"}, last)});
  };
  CHECK(run(joined({only_in("forward", two("")), only_in("replay", two(R"("shape":[4,4])")),
                    op("sin", {"k"}, {"y"})})) ==
        "E-META: r#1 (micro-batch 1, backward): the replay saved other tensors than forward");
  CHECK(run(joined({op("tanh", {"x"}, {"h"}), op("mul", {"h", "h"}, {"y"}), unseen_write("h")}),
            R"("early_stop":false)") ==
        "E-SLOT-STALE: slot f1.1 of r#1 (micro-batch 1, backward): it was overwritten after the "
        "replay filled it (version 0 to 1)");
  CHECK(run(joined({only_in("replay", op("tanh", {"x"}, {"a"})),
                    only_in("forward", op("tanh", {"x"}, {"b"})), op("tanh", {"b"}, {"y"})})) ==
        "E-USER: r#1 (micro-batch 1, replay): 'b' is read and has no value in this run of the "
        "code");
}

TEST_CASE("an error of gradients names what it can", "[sim]") {
  const std::string body = op("sin", {"x"}, {"y"});
  CHECK(message_of(region(joined({op("matmul", {"x", "w0"}, {"y"})}), R"("in":[])"),
                   "torch-reentrant") ==
        "E-GRAD-NONE: r#0 (micro-batch 0, forward): a reentrant region hands gradients to its "
        "tensor arguments only, and reads a tensor that requires grad past them; none of its "
        "arguments requires grad");
  const std::string unseen = R"({"no_grad":[)" + body + "]}";
  CHECK(message_of(region(joined({only_in("forward", body), only_in("replay", unseen)})),
                   "torch-reentrant") ==
        "E-GRAD-NONE: r#1 (micro-batch 1, backward): none of the outputs of the reentrant region "
        "has requires_grad");
  CHECK(message_of(region(unseen), "torch") ==
        "E-GRAD-NONE: micro-batch 1, backward: element 0 of tensors does not require grad and does "
        "not have a grad_fn");
  CHECK(message_of(region(body), "torch-reentrant", "",
                   R"({"microbatches":2,"actions":["F0.0","F0.1",)"
                   R"({"action":"B0.1","wrt":["x"]}]})") ==
        "E-USER: r#1 (micro-batch 1, backward): reentrant checkpoint is incompatible with .grad() "
        "and with inputs= of backward");
}

}  // namespace remat
