#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/wrapped_recording.hpp"

// observed-hyperparallel.md §6: the rules of recompute sessions, R21 to R24.

using namespace remat;

namespace {

using Events = std::vector<std::string>;

const std::string session_error =
    "error hyper_parallel.platform.torch.activation_checkpoint.checkpoint.CheckpointError";

/// Two regions, each of which saves its input alone.
WrappedRecording two_regions() {
  WrappedRecording run;
  run.region(0, {1}).save(0, 1).op("sin.default", {1}, 4).end_region();
  run.region(1, {4}).save(1, 4).op("cos.default", {4}, 5).end_region();
  run.op("sum.default", {5}, 6, "[]").end_phase();
  return run;
}

/// A region with a call that has a slot.
WrappedRecording region_with_call() {
  WrappedRecording run;
  run.region(0, {1}).op("mul.Tensor", {1}, 4);
  run.enter("w", {4}).slot(0, 4, 0).op("sin.default", {4}, 5);
  run.boundary(0, 0, 5, 6).leave("w", {6}).end_region();
  run.op("sum.default", {6}, 7, "[]").end_phase();
  return run;
}

WrappedRecording& prefire(WrappedRecording& run, const std::string& more = "") {
  return run.phase("pretrigger", more).open("s", true, "prefire").close("s").end_phase();
}

WrappedRecording& backward(WrappedRecording& run, bool retain, const std::string& more = "",
                           const std::string& name = "backward") {
  return run.phase(name, more).open("s", retain).close("s").end_phase();
}

std::ptrdiff_t count(const Events& events, const std::string& event) {
  return std::count(events.begin(), events.end(), event);
}

bool is_unsupported(const WrappedRecording& run) {
  return run.predicted().front().starts_with("unsupported: ");
}

const Events replay_0 = {"replay u0#0", "save f0.0", "stop", "end"};
const Events replay_1 = {"replay u1#0", "save f1.0", "stop", "end"};

Events operator+(Events a, const Events& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("R22: a prefire replays the frames of the forward in order, and reads nothing", "[sim]") {
  WrappedRecording run = two_regions();
  backward(prefire(run), false);
  CHECK(run.predicted() == replay_0 + replay_1 + Events{"unpack f1.0", "unpack f0.0"});
}

TEST_CASE("R22: only the frames that are named, in their order; the rest replays when asked",
          "[sim]") {
  WrappedRecording reverse = two_regions();
  backward(prefire(reverse, R"(,"prefire":[1,0])"), false);
  CHECK(reverse.predicted() == replay_1 + replay_0 + Events{"unpack f1.0", "unpack f0.0"});
  WrappedRecording first = two_regions();
  backward(prefire(first, R"(,"prefire":[0])"), false);
  CHECK(first.predicted() == replay_0 + replay_1 + Events{"unpack f1.0", "unpack f0.0"});
}

TEST_CASE("R22: a handle on a frame opens a session of its own for it", "[sim]") {
  WrappedRecording run = two_regions();
  run.phase("pretrigger").open("s", true, "recompute_handle").close("s").end_phase();
  backward(run, false);
  CHECK(run.predicted() == replay_0 + replay_1 + Events{"unpack f1.0", "unpack f0.0"});
  // One handle, one frame.
  CHECK(Events(replay_0) == [&] {
    const Events events = run.predicted();
    return Events(events.begin(), events.begin() + 4);
  }());
}

TEST_CASE("R22: a frame that was replayed for the session is not replayed again", "[sim]") {
  WrappedRecording run = two_regions();
  backward(prefire(prefire(run)), false);
  CHECK(run.predicted() == replay_0 + replay_1 + Events{"unpack f1.0", "unpack f0.0"});
}

TEST_CASE("R21: a session in which no frame is registered changes nothing", "[sim]") {
  WrappedRecording run = two_regions();
  backward(run, true);
  CHECK(run.predicted() == replay_1 + Events{"unpack f1.0"} + replay_0 + Events{"unpack f0.0"});
}

TEST_CASE("R21: outside the session each graph task replays", "[sim]") {
  WrappedRecording run = two_regions();
  prefire(run).phase("backward").end_phase();
  const Events events = run.predicted();
  CHECK(count(events, "replay u0#0") == 2);
  CHECK(count(events, "replay u1#0") == 2);
}

TEST_CASE("R21: a slot is handed out again only after readers that retain", "[sim]") {
  WrappedRecording retained = two_regions();
  backward(backward(prefire(retained), true, R"(,"retain":true)"), false);
  const Events events = retained.predicted();
  CHECK(count(events, "unpack f1.0") == 2);
  CHECK(count(events, "replay u1#0") == 1);
  WrappedRecording twice = two_regions();
  backward(backward(prefire(twice), false, R"(,"retain":true)"), true);
  CHECK(twice.predicted() ==
        replay_0 + replay_1 + Events{"unpack f1.0", "unpack f0.0", session_error});
}

TEST_CASE("R21: clearing forgets the frames and what was brought, not that entries are gone",
          "[sim]") {
  WrappedRecording plain = two_regions();
  backward(prefire(plain).clear("s"), false);
  CHECK(count(plain.predicted(), "replay u0#0") == 2);
  WrappedRecording wrapped = region_with_call();
  backward(prefire(wrapped).clear("s"), false);
  CHECK(wrapped.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip w#0", "fill x0",
                                      "save f0.0", "stop", "end", "replay u0#0",
                                      "op aten.mul.Tensor", "end", "error builtins.RuntimeError"});
}

TEST_CASE("R16, R21: a slot of a body stays filled for whoever asks", "[sim]") {
  WrappedRecording run = region_with_call();
  backward(backward(prefire(run), true, R"(,"retain":true)"), false);
  CHECK(run.predicted() == Events{"replay u0#0", "op aten.mul.Tensor", "skip w#0", "fill x0",
                                  "save f0.0", "stop", "end", "unpack f0.0", "unpack x0",
                                  "unpack f0.0", "unpack x0"});
}

TEST_CASE("R23: a region is not entered in a replay while a session is in scope", "[sim]") {
  WrappedRecording run;
  run.region(0, {1}).begin_region(1).save(0, 1).inputs(1, {1});
  run.save(1, 1).op("sin.default", {1}, 4).end_region();
  run.save(0, 4).op("cos.default", {4}, 5).end_region();
  run.op("sum.default", {5}, 6, "[]").end_phase();
  WrappedRecording lazily = run;
  const Events refused = {"replay u0#0", "save f0.0", "end", session_error};
  CHECK(backward(lazily, false).predicted() == refused);
  CHECK(prefire(run).predicted() == refused);
}

TEST_CASE("R23: nor in a forward", "[sim]") {
  WrappedRecording run;
  run.open("s", true).region(0, {1}).end_region().close("s").end_phase();
  CHECK(run.phase("backward").end_phase().predicted() == Events{session_error});
}

TEST_CASE("R24: from a loss dw is one task; dx and dw in one session share a replay", "[sim]") {
  const auto split = [](WrappedRecording& run) {
    backward(run, true, "", "backward_input");
    return backward(run, false, "", "backward_weight").predicted();
  };
  WrappedRecording run;
  run.region(0, {1}).save(0, 2).save(0, 1).op("mm.default", {1, 2}, 4).end_region();
  run.region(1, {4}).save(1, 3).save(1, 4).op("mm.default", {4, 3}, 5).end_region();
  run.op("sum.default", {5}, 6, "[]").end_phase();
  WrappedRecording alone = run;
  CHECK(count(split(alone), "replay u1#0") == 2);
  prefire(run);
  const Events events = split(run);
  CHECK(count(events, "replay u1#0") == 1);
  // One task reads each slot once: groups would read those of u1 in dx, and for each parameter.
  CHECK(count(events, "unpack f1.0") == 2);
  CHECK(count(events, "unpack f0.0") == 2);
}

TEST_CASE("R15: a backward may start elsewhere than at the last output", "[sim]") {
  WrappedRecording run = two_regions();
  run.phase("backward", R"(,"root":4)").end_phase();
  CHECK(run.predicted() == replay_0 + Events{"unpack f0.0"});
}

TEST_CASE("R26: a session that is misused is unsupported", "[sim]") {
  WrappedRecording nested = two_regions();
  nested.phase("backward").open("s", true).open("t", true);
  CHECK(is_unsupported(nested));
  WrappedRecording other = two_regions();
  other.phase("backward").open("s", true).close("t");
  CHECK(is_unsupported(other));
  WrappedRecording nothing = two_regions();
  nothing.open("s", true).close("s");
  CHECK(is_unsupported(nothing));
  WrappedRecording outside = two_regions();
  outside.phase("pretrigger").end_phase();
  CHECK(is_unsupported(outside));
  WrappedRecording nameless = two_regions();
  nameless.phase("backward").event(R"("kind":"session_open","retain":true)");
  CHECK(is_unsupported(nameless));
}
