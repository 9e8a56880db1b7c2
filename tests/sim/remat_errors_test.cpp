#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/remat_stage.hpp"

// What regions of torch_remat refuse, and what only the strict protocol does (protocols.md P7,
// §2.12, observed-torch.md §5).

using namespace remat;

namespace {

using Names = std::vector<std::string>;

const std::string as_torch = R"("compat":"torch")";

std::string only_in(const std::string& run, const std::string& body) {
  return R"({"branch":")" + run + R"(","body":[)" + body + "]}";
}
std::string message_of(const ScenarioRun& run) {
  return run.result.error ? run.result.error->code + ": " + run.result.error->message : "none";
}
/// Strictly and as torch_remat is.
void require_refused(const std::string& body, const std::string& message) {
  for (const std::string& options : {std::string(), as_torch})
    CHECK(message_of(run_remat(make_a + body, options)) == message);
}

}  // namespace

TEST_CASE("P7: an op that reads a placeholder raises, and names region and output",
          "[sim][remat]") {
  const std::string reads =
      " in replay reads the placeholder of region s in r#0 (micro-batch 0, replay) output 0; say "
      "that a "
      "replay needs the tensor (needs_tensor), or read it in a region that is recomputed";
  // Also one that saves nothing, one that writes it, and one that reads a view of it.
  require_refused(square + "," + op("sin", {"h"}, {"y"}), "E-PLACEHOLDER: sin" + reads);
  require_refused(square + "," + op("add", {"h", "h"}, {"y"}), "E-PLACEHOLDER: add" + reads);
  require_refused(square + "," + scaled_in_place("h") + "," + op("add", {"h", "h"}, {"y"}),
                  "E-PLACEHOLDER: scale" + reads);
  require_refused(square + "," + flat("h", "v") + "," + op("add", {"v", "v"}, {"y"}),
                  "E-PLACEHOLDER: add" + reads);
  // It stands between two saved regions: that the second would not run is no help.
  require_refused(square + "," + op("scale", {"h"}, {"g"}) + "," +
                      saved("t", R"("in":["g"])", op("sin", {"g"}, {"y"})),
                  "E-PLACEHOLDER: scale" + reads);
}

TEST_CASE("P7: a placeholder that was read is told by an op_error and by boundaries_match",
          "[sim][remat]") {
  const ScenarioRun saves = run_remat(make_a + square + "," + op("sin", {"h"}, {"y"}));
  CHECK(saves.kinds(Kind::op_error) == 1);
  CHECK(saves.ops("sin", Phase::replay) == 0);  // it raised, so it did not run
  CHECK(saves.broken() == Names{"boundaries_match"});
  const ScenarioRun adds = run_remat(make_a + square + "," + op("add", {"h", "h"}, {"y"}));
  CHECK(adds.kinds(Kind::op_error) == 1);
  CHECK(adds.broken() == Names{"boundaries_match"});
  CHECK(adds.result.error->type == "builtins.RuntimeError");
}

TEST_CASE("P7: two regions of one name in a checkpoint are an error, saved or not",
          "[sim][remat]") {
  for (const bool recompute : {false, true}) {
    CAPTURE(recompute);
    require_refused(
        remat_region("c", recompute, in_a, op("sin", {"a"}, {"h"})) + "," +
            remat_region("c", recompute, in_h, op("sin", {"h"}, {"y"})),
        "E-STRUCTURE: region c in r#0 (micro-batch 0, forward): a second region of this name in "
        "one forward; give it another");
  }
  // One that lies in a saved region's body is part of that.
  CHECK(message_of(run_remat(
            make_a + saved("c", in_a, saved("c", in_a, op("sin", {"a"}, {"y"}))))) == "none");
}

TEST_CASE("P7: a replay that meets a name twice is an error too", "[sim][remat]") {
  const std::string twice =
      only_in("replay", recomputed("c", in_a + R"(,"out":[])", op("neg", {"a"}, {"q"})));
  require_refused(
      twice + "," + recomputed("c", in_a, op("sin", {"a"}, {"y"})),
      "E-STRUCTURE: region c in r#0 (micro-batch 0, replay): a second region of this name in "
      "one replay; give it another");
}

TEST_CASE("P7: a region to be recomputed within a saved one is an error", "[sim][remat]") {
  require_refused(
      saved("o", in_a, recomputed("i", in_a, op("sin", {"a"}, {"y"}))),
      "E-STRUCTURE: region i in r#0 (micro-batch 0, forward) is to be recomputed and lies in "
      "region o, which is saved: a replay never runs it; save it, or recompute the one "
      "around");
}

TEST_CASE("P7: checkpointed regions do not nest", "[sim][remat]") {
  const std::string inner = checkpoint("i", op("sin", {"a"}, {"y"}));
  const std::string message =
      "E-STRUCTURE: i lies in r#0 (micro-batch 0, forward): checkpointed regions do not nest";
  require_refused(inner, message);
  require_refused(saved("s", in_a, inner), message);
  CHECK(run_remat(make_a + inner).result.error->type == "builtins.NotImplementedError");
}

TEST_CASE("P7: forward and replay disagree on a region", "[sim][remat]") {
  const auto region = [](bool recompute) {
    return remat_region("n", recompute, in_a + R"(,"out":[])", op("neg", {"a"}, {"q"}));
  };
  const std::string rest = "," + op("sin", {"a"}, {"y"});
  const std::string no_record =
      "E-CACHE-MISS: region n in r#0 (micro-batch 0, replay): forward left no record of it; "
      "forward and "
      "replay ran different code, or it was recomputed then, or its body raised";
  require_refused(only_in("replay", region(false)) + rest, no_record);
  require_refused(only_in("forward", region(true)) + "," + only_in("replay", region(false)) + rest,
                  no_record);
  require_refused(only_in("forward", region(false)) + "," + only_in("replay", region(true)) + rest,
                  "E-STRUCTURE: region n in r#0 (micro-batch 0, replay): forward saved it, and the "
                  "replay is to "
                  "recompute it");
}

TEST_CASE("P7: an argument that the replay lacks is E-PATH", "[sim][remat]") {
  const std::string body = only_in("forward", op("sin", {"x"}, {"b"})) + "," +
                           saved("n", R"("in":["a","b"])", op("mul", {"a", "b"}, {"y"}));
  require_refused(
      body,
      "E-PATH: region n in r#0 (micro-batch 0, replay): input arg1 is not there in the replay");
}

TEST_CASE("P7: an argument of another layout is refused; torch_remat looks at views only",
          "[sim][remat]") {
  const std::string other = only_in("forward", op("sin", {"x"}, {"a"})) + "," +
                            only_in("replay", op("sin", {"x"}, {"a"}, R"("stride":[16,1])")) + ",";
  const std::string body = other + saved("n", in_a, op("mul", {"a", "a"}, {"y"}));
  const ScenarioRun run = run_remat(body);
  CHECK(message_of(run) ==
        "E-LAYOUT: slot f0.n:saved_input.0 of region n in r#0 (micro-batch 0, replay), input arg0: "
        "layout "
        "changed: forward f32[4, 8] strides [8, 1], replay f32[4, 8] strides [16, 1]");
  CHECK(run.broken() == Names{"saved_lists_match"});
  const ScenarioRun published = run_remat(body, as_torch);
  CHECK(published.code() == "none");
  CHECK(published.result.gradients_match == true);
  CHECK(published.broken() == Names{"saved_lists_match"});
}

TEST_CASE("P7: an argument that the replay wrote is refused; torch_remat takes it",
          "[sim][remat]") {
  const std::string body = make_a + only_in("replay", scaled_in_place("a")) + "," +
                           saved("n", in_a, op("sin", {"a"}, {"y"}));
  CHECK(message_of(run_remat(body)) ==
        "E-LAYOUT: slot f0.n:saved_input.0 of region n in r#0 (micro-batch 0, replay), input arg0: "
        "version "
        "changed: forward 0, replay 1");
  const ScenarioRun published = run_remat(body, as_torch);
  CHECK(published.code() == "none");
  CHECK(published.result.gradients_match == false);
  CHECK(published.broken() == Names{"gradients_equal_plain"});
}

TEST_CASE("P7: a tensor kept for backward that is written since is E-MUTATED", "[sim][remat]") {
  const std::string body = make_a + saved("s", in_a,
                                          op("scale", {"a"}, {"g"}) + "," +
                                              op("sin", {"g"}, {"y"}) + "," + scaled_in_place("g"));
  for (const std::string& options : {std::string(), as_torch}) {
    const ScenarioRun run = run_remat(body, options);
    CHECK(run.code() == "E-MUTATED");
    CHECK(run.broken() == Names{"version_unchanged"});
  }
  CHECK(run_plain(body).code() == "E-MUTATED");
}

TEST_CASE("P7: an output kept for a replay that is written since is E-MUTATED", "[sim][remat]") {
  const std::string body = make_a + square + "," + recomputed("c", in_h, op("sin", {"h"}, {"y"})) +
                           "," + scaled_in_place("h");
  for (const std::string& options : {std::string(), as_torch}) {
    const ScenarioRun run = run_remat(body, options);
    CHECK(message_of(run) ==
          "E-MUTATED: output 0 that region s in r#0 (micro-batch 0, replay) kept was mutated "
          "(version 0 to "
          "1)");
    CHECK(run.broken() == Names{"version_unchanged"});
  }
  // One that another saved region wrote before it was kept is what it is.
  const std::string before = make_a + square + "," +
                             saved("t", in_h + R"(,"out":"h")", scaled_in_place("h")) + "," +
                             recomputed("c", in_h, op("sin", {"h"}, {"y"}));
  require_sound(run_remat(before), run_plain(before));
}

TEST_CASE("P7: a replay that writes what it is served is refused, as forward wrote it already",
          "[sim][remat]") {
  // Kept after the write, so that its version is right; the bare write runs again in the replay.
  const std::string writes = make_a + square + "," + scaled_in_place("h") + "," + needs("h") + "," +
                             op("sin", {"h"}, {"y"});
  for (const std::string& options : {std::string(), as_torch}) {
    const ScenarioRun run = run_remat(writes, options);
    CHECK(message_of(run) ==
          "E-MUTATED: scale in replay writes output 0 of region s in r#0 (micro-batch 0, replay), "
          "which "
          "forward kept: it would be written twice; write it in a region that is saved");
    CHECK(run.result.error->type == "builtins.RuntimeError");
    CHECK(run.broken().empty());  // refused before it ran
  }
  // Autograd does not look at what wants no gradient: torch_remat is silently wrong there.
  const std::string unseen = make_a +
                             saved("s", in_a + R"(,"out":"h")",
                                   op("detach", {"a"}, {"d"}) + "," + op("sin", {"d"}, {"h"})) +
                             "," + scaled_in_place("h") + "," +
                             recomputed("c", R"("in":["a","h"])", op("mul", {"a", "h"}, {"y"}));
  CHECK(run_remat(unseen).code() == "E-MUTATED");
  const ScenarioRun published = run_remat(unseen, as_torch);
  CHECK(published.code() == "none");
  CHECK(published.result.gradients_match == false);
  CHECK(published.broken() == Names{"gradients_equal_plain"});
}

TEST_CASE(
    "P7: what a replay brought is written before it is read: strict stops, torch_remat is "
    "silently wrong",
    "[sim][remat]") {
  const std::string body = make_a + saved("n", in_a, op("sin", {"a"}, {"h"})) + "," +
                           scaled_in_place("a") + "," + needs("h") + "," +
                           op("mul", {"a", "h"}, {"y"});
  const ScenarioRun run = run_remat(body);
  CHECK(message_of(run) ==
        "E-SLOT-STALE: slot f0.n:saved_input.0 of region n in r#0 (micro-batch 0, backward), input "
        "arg0: "
        "it was overwritten after the replay filled it (version 0 to 1)");
  CHECK(run.broken() == Names{"version_unchanged"});
  const ScenarioRun published = run_remat(body, as_torch);
  CHECK(published.code() == "none");
  CHECK(published.broken() == Names{"version_unchanged"});
  CHECK(run_plain(body).code() == "E-MUTATED");  // which torch itself would refuse
}

TEST_CASE("P7: state hooks put the generator where a skipped body left it", "[sim][remat]") {
  const auto dropout = [](const std::string& in, const std::string& out) {
    return R"({"random":"dropout","in":[")" + in + R"("],"out":[")" + out + R"(","m)" + out +
           R"("]})";
  };
  const std::string body = dropout("x", "a") + "," +
                           saved("s", in_a + R"(,"out":"h")", dropout("a", "h")) + "," +
                           recomputed("c", in_h + R"(,"out":"y")", dropout("h", "y"));
  const std::string hooked = R"("state_hooks":true)";
  const std::string unhooked = R"("state_hooks":false)";
  const std::string torch_hooked = as_torch + "," + hooked;
  const std::string torch_unhooked = as_torch + "," + unhooked;
  // Strict has them unless told otherwise, torch_remat the other way round.
  for (const std::string& options : {std::string(), hooked, torch_hooked}) {
    CAPTURE(options);
    const ScenarioRun run = run_remat(body, options);
    require_sound(run, run_plain(body));
    CHECK(run.kinds(Kind::rng_set) == 2);  // at the begin, and behind s: it ends where it was
  }
  for (const std::string& options : {as_torch, torch_unhooked}) {
    CAPTURE(options);
    const ScenarioRun run = run_remat(body, options);
    CHECK(run.code() == "none");
    CHECK(run.result.gradients_match == false);
    CHECK(run.broken() == Names{"rng_position", "gradients_equal_plain"});
    CHECK(run.kinds(Kind::rng_set) == 0);
  }
  // Strict compares what the replay saves.
  CHECK(run_remat(body, unhooked).code() == "E-META");
}

TEST_CASE("P7: without state hooks a draw in a skipped body alone does no harm", "[sim][remat]") {
  const std::string body = make_a + saved("s", in_a + R"(,"out":"y")",
                                          R"({"random":"dropout","in":["a"],"out":["y","m"]})");
  for (const std::string options : {R"("compat":"torch")", R"("state_hooks":false)"})
    require_sound(run_remat(body, options), run_plain(body));
}

TEST_CASE("P7: a saved region that raised in forward has left a replay no record", "[sim][remat]") {
  const std::string body =
      make_a + R"({"catch":[)" +
      saved("s", in_a + R"(,"out":"h")",
            op("sin", {"a"}, {"h"}) + R"(,{"raise":"builtins.ValueError","in":"always"})") +
      "]}," + op("sin", {"a"}, {"y"});
  CHECK(run_remat(body).code() == "E-CACHE-MISS");
}

TEST_CASE("P7: a checkpoint whose body raised leaves nothing behind", "[sim][remat]") {
  const auto stage_that_raises = [](const std::string& when) {
    const std::string body = make_a + square + "," +
                             recomputed("c", in_h, op("sin", {"h"}, {"b"})) +
                             R"(,{"raise":"builtins.ValueError","in":")" + when + R"("})";
    return R"({"catch":[)" + checkpoint("r", body) + "]}," + op("mul", {"x", "x"}, {"y"}) + "," +
           loss_of("y");
  };
  for (const char* when : {"forward", "always"}) {
    CAPTURE(when);
    const std::string stage = stage_that_raises(when);
    const ScenarioRun run = run_stage(stage, "remat");
    require_sound(run, run_stage(stage, "none"));
    CHECK(run.count("replay r#0") == 0);
    CHECK(run.result.resident_bytes == 4);
  }
}
