#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/model/builders/built_program.hpp"
#include "tests/survey/chain_replay.hpp"

// Figures of a chain of equal steps that are often told wrong (docs/survey-figures.md). L or n
// steps, k segments, s states; backward takes twice as long as forward; T0 is the time of a step
// without checkpoints, 3·L.

namespace remat {
namespace {

constexpr std::int64_t loss_bytes = 1;

/// A chain cut into k segments, each replayed whole: no early stop.
ScenarioRun run_segments(std::int64_t steps, std::int64_t k, bool keeps_last = false) {
  const Json program = {{"builder", "chain"},     {"steps", steps}, {"checkpoint", "segments"},
                        {"segments", k},          {"cost_ns", 1},   {"backward_ns", 2},
                        {"keep_last", keeps_last}};
  return run_text(text_of(program, {{"name", "torch"}, {"early_stop", false}}));
}
std::int64_t replayed(const ScenarioRun& run) {
  return run.ops("sin", Phase::replay);
}
/// Units of one step's bytes that are kept at the end of forward.
std::int64_t kept(const ScenarioRun& run) {
  return run.result.resident_bytes - loss_bytes;
}

double of_t0(std::int64_t time, std::int64_t steps) {
  return static_cast<double>(time) / static_cast<double>(3 * steps);
}
/// Forward work before the step's turn, its turn, backward.
double step_time(std::int64_t advances, std::int64_t steps) {
  return of_t0(advances + steps + 2 * steps, steps);
}

double per_step(std::int64_t advances, std::int64_t steps) {
  return static_cast<double>(advances) / static_cast<double>(steps);
}

/// The fewest states with which a chain takes fewer than `most` advances a step.
std::int64_t states_for(std::int64_t steps, std::int64_t most) {
  std::int64_t s = 1;
  while (fewest_advances(steps, s) >= most * steps)
    ++s;
  return s;
}

/// The fewest states that reach n steps with r repetitions.
std::int64_t states_reaching(std::int64_t n, std::int64_t r) {
  std::int64_t s = 1;
  while (reach(s, r) < n)
    ++s;
  return s;
}

}  // namespace

TEST_CASE("E1: replaying everything once takes 4/3 of the time", "[survey]") {
  const std::int64_t steps = 96;
  const std::int64_t all = run_segments(steps, 8).result.end.ns;
  CHECK(all == 96 + 96 + 192);
  CHECK(of_t0(all, steps) == Approx(4.0 / 3));
  const std::int64_t without_last = run_segments(steps, 8, true).result.end.ns;
  CHECK(without_last == 96 + 84 + 192);
  CHECK(of_t0(without_last, steps) == Approx(1.292).margin(0.0005));
}

TEST_CASE("E2: forward work doubles, the step takes a third longer", "[survey]") {
  const ScenarioRun run = run_segments(96, 8);
  CHECK(run.ops("sin", Phase::forward) + replayed(run) == 192);
  const std::int64_t plain_ns = 288;
  CHECK(3 * run.result.end.ns == 4 * plain_ns);
}

TEST_CASE("E3: k segments keep k + L/k, replay less than one forward, and k is best at the root",
          "[survey]") {
  const std::int64_t steps = 64;
  std::int64_t fewest = steps;
  for (const std::int64_t k : {1, 2, 4, 8, 16, 32, 64}) {
    CAPTURE(k);
    const ScenarioRun run = run_segments(steps, k, true);
    CHECK(replayed(run) == steps - steps / k);
    // The first state of the last segment is one of its own.
    CHECK(kept(run) == k - 1 + steps / k);
    fewest = std::min(fewest, kept(run) + 1);
  }
  CHECK(fewest == 16);
}

TEST_CASE("E4: at k = √n memory is Θ(√n) and the replay factor stays below 1", "[survey]") {
  for (const std::int64_t root : {2, 4, 8, 16, 32}) {
    CAPTURE(root);
    const std::int64_t steps = root * root;
    const ScenarioRun run = run_segments(steps, root, true);
    CHECK(kept(run) + 1 == 2 * root);
    CHECK(replayed(run) == steps - root);
    CHECK(replayed(run) < steps);
  }
}

TEST_CASE("E5: 1024 layers need 64 units at best", "[survey]") {
  std::int64_t fewest = INT64_MAX;
  for (std::int64_t k = 1; k <= 1024; ++k)
    fewest = std::min(fewest, k + (1024 + k - 1) / k);
  CHECK(fewest == 64);
  const ScenarioRun run = run_segments(1024, 32);
  CHECK(kept(run) == 32);
  // A segment's 32 states, of which the first is its checkpoint; then, with the whole segment
  // replayed, what its last step makes.
  CHECK(run.result.replay_peak_bytes == 31 + 1);
}

TEST_CASE("E6: 1024 layers in 32 segments replay 992 steps", "[survey]") {
  const ScenarioRun run = run_segments(1024, 32, true);
  CHECK(replayed(run) == 992);
  CHECK(per_step(replayed(run), 1024) == Approx(0.969).margin(0.0005));
}

TEST_CASE("E7: states and repetitions grow together: n ≤ C(s + r, s)", "[survey]") {
  for (std::int64_t half = 1; half <= 20; ++half) {
    // With as many states as repetitions both are near half of log2 n.
    const std::int64_t n = reach(half, half);
    CHECK(repetitions(n, half) == half);
    CHECK(2 * half >= static_cast<std::int64_t>(std::log2(n)));
  }
  // Constant repetitions need n^(1/r) states: a thousand times the steps, ten times the states.
  CHECK(states_reaching(1'000, 3) == 17);
  CHECK(states_reaching(1'000'000, 3) == 180);
  // As many states as log2 n do not hold the repetitions.
  CHECK(repetitions(1 << 10, 10) == 5);
  CHECK(repetitions(1 << 20, 20) == 8);
  CHECK(repetitions(1 << 30, 30) == 11);
}

TEST_CASE("E8: halving 1024 steps advances 5120 times, ten states 3755 times", "[survey]") {
  CHECK(bisection_advances(1024) == 5120);
  CHECK(per_step(5120, 1024) == 5.0);
  CHECK(step_time(5120, 1024) == Approx(2.67).margin(0.005));
  CHECK(fewest_advances(1024, 10) == 3755);
  CHECK(per_step(3755, 1024) == Approx(3.67).margin(0.005));
  CHECK(step_time(fewest_advances(1024, 10), 1024) == Approx(2.22).margin(0.005));
  CHECK(step_time(fewest_advances(1024, 11), 1024) == Approx(2.185).margin(0.0005));
  // The closed form is the optimum.
  const TriedAll tried = try_all(70, 8);
  for (std::int64_t s = 1; s <= 8; ++s) {
    for (std::int64_t n = 1; n <= 70; ++n) {
      CAPTURE(s, n);
      CHECK(fewest_advances(n, s) ==
            tried.advances[static_cast<std::size_t>(s)][static_cast<std::size_t>(n)]);
    }
  }
}

TEST_CASE("E9: fewer than ten states do as well", "[survey]") {
  CHECK(step_time(fewest_advances(1024, 10), 1024) == Approx(2.22).margin(0.005));
  CHECK(step_time(fewest_advances(1024, 6), 1024) == Approx(2.78).margin(0.006));
  CHECK(step_time(fewest_advances(1024, 5), 1024) == Approx(3.11).margin(0.005));
}

TEST_CASE("E10: binomial is not binary: six states and seven repetitions reach 1024", "[survey]") {
  CHECK(reach(6, 6) == 924);
  CHECK(repetitions(1024, 6) == 7);
  CHECK(fewest_advances(1024, 10) < bisection_advances(1024));
}

TEST_CASE("E11: a thousand times the layers need ten more states", "[survey]") {
  CHECK(std::log2(96.0) == Approx(6.6).margin(0.05));
  CHECK(std::log2(96'000.0) == Approx(16.6).margin(0.05));
  CHECK(std::log2(96'000.0) - std::log2(96.0) == Approx(10).margin(0.05));
  CHECK(std::log2(96'000.0) / std::log2(96.0) == Approx(2.5).margin(0.05));
}

TEST_CASE("E12: fewer than three advances a step need 16 states, fewer than two 43", "[survey]") {
  CHECK(states_for(1024, 3) == 16);
  CHECK(states_for(1024, 2) == 43);
}

TEST_CASE("E13: the closed form is of equal steps; unequal ones need the table", "[survey]") {
  const std::int64_t s = 3;
  const std::vector<std::int64_t> equal(12, 1);
  CHECK(try_all(equal, s).cost_ns == fewest_advances(12, s));
  // The same time in all, most of it in the first step: states behind it are worth more.
  std::vector<std::int64_t> unequal(12, 1);
  unequal.front() = 100;
  const std::int64_t mean_ns = (100 + 11) / 12;
  CHECK(try_all(unequal, s).cost_ns < mean_ns * fewest_advances(12, s));
  CHECK(try_all(unequal, s).cost_ns > 100);
}

TEST_CASE("E23: all layers replayed cost a third whatever the interval, a part its part",
          "[survey]") {
  const std::int64_t steps = 96;
  for (const std::int64_t interval : {1, 2, 3, 4, 12, 96}) {
    CAPTURE(interval);
    CHECK(run_segments(steps, steps / interval).result.end.ns == 3 * steps + steps);
  }
  for (const std::int64_t part : {24, 48, 72}) {
    const Json program = {{"builder", "chain"},
                          {"steps", steps},
                          {"checkpoint", "segments"},
                          {"segments", {part, steps - part}},
                          {"keep_last", true}};
    const std::int64_t time =
        run_text(text_of(program, {{"name", "torch"}, {"early_stop", false}})).result.end.ns;
    CHECK(of_t0(time, steps) - 1 ==
          Approx(static_cast<double>(part) / static_cast<double>(steps) / 3));
  }
}

TEST_CASE("E25: a table of equal steps takes n²·s splits, of unequal ones n³·s", "[survey]") {
  CHECK(try_all(100, 5).splits == 4 * binomial(100, 2));
  const std::vector<std::int64_t> costs(30, 1);
  CHECK(try_all(costs, 5).splits == 4 * binomial(31, 3));
}

}  // namespace remat
