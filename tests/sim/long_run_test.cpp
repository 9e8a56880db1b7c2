#include <unistd.h>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/sim/scenario_file.hpp"

// What stays the same over very many steps (I-18, I-35): bytes, slots, entries, our own memory.

using namespace remat;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t n_steps = 2'000;  // and what is freed stays in a sanitizer's quarantine
constexpr bool memory_is_ours = false;
#else
constexpr std::int64_t n_steps = 100'000;
constexpr bool memory_is_ours = true;
#endif

/// Bytes of this process that lie in memory.
std::int64_t resident_set_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  std::int64_t in_memory = 0;
  file >> pages >> in_memory;
  return in_memory * sysconf(_SC_PAGESIZE);
}

/// What one phase leaves behind.
struct AfterOnePhase {
  PhaseStep::Kind kind;
  std::array<std::int64_t, owner_class_count> by_class;
  RankContents contents;
  std::vector<std::uint64_t> gradients;

  friend bool operator==(const AfterOnePhase&, const AfterOnePhase&) = default;
};

AfterOnePhase seen(const Rank& rank, const PhaseStep& phase) {
  AfterOnePhase after{phase.kind, rank.ledger().live().by_class, rank.contents(), {}};
  for (const Contribution& contribution : rank.contributions())
    after.gradients.push_back(contribution.value.value());
  return after;
}

}  // namespace

TEST_CASE("100,000 steps of a save_output=False chain leave nothing behind", "[sim][long]") {
  // No update: every step computes the same, so all that it leaves can be held against step 3's.
  const Scenario scenario =
      parse_scenario("chain.json", scenario_text("verification_06_save_origin"));
  const Simulation simulation = simulation_of(scenario);
  std::vector<AfterOnePhase> third;
  std::int64_t step = 0;
  std::int64_t n_different = 0;
  std::size_t phase_of_step = 0;
  std::int64_t warm_bytes = 0;
  const auto look = [&](const Rank& rank, const PhaseStep& phase) {
    if (phase.kind == PhaseStep::Kind::step_begin) {
      ++step;
      phase_of_step = 0;
      if (step == 1'000) warm_bytes = resident_set_bytes();
    }
    const AfterOnePhase now = seen(rank, phase);
    if (step == 3) third.push_back(now);
    if (step > 3 && (phase_of_step >= third.size() || third[phase_of_step] != now)) ++n_different;
    ++phase_of_step;
  };
  const auto error = run_over_and_over(simulation, n_steps, look);
  const std::int64_t grown_bytes = resident_set_bytes() - warm_bytes;
  REQUIRE_FALSE(error.has_value());
  CHECK(step == n_steps);
  CHECK(n_different == 0);
  if (memory_is_ours) CHECK(grown_bytes < 262'144);  // 99,000 steps of even 3 bytes are more

  // begin, forward, backward, end; the chain is there after forward and gone after backward.
  REQUIRE(third.size() == 4);
  const RankContents& forward = third[1].contents;
  CHECK(forward.frames == 1);
  CHECK(forward.input_slots == 2);  // h of the GEMM, h of the gate
  CHECK(forward.entries == 3);
  const RankContents& backward = third[2].contents;
  CHECK(backward.frames == 0);
  CHECK(backward.holders == 0);
  CHECK(backward.input_slots == 0);
  CHECK(backward.entries == 0);
  CHECK(third[3].contents.nodes == 0);
  // x goes with its step. What stays: w, g, their gradients, and the trigger and the placeholder,
  // of which a process has one each.
  CHECK(third[3].contents.storages == 6);
}

TEST_CASE("a placeholder kept for every call shows in what a step leaves behind", "[sim][long]") {
  const Scenario scenario =
      parse_scenario("chain.json", scenario_text("verification_06_save_origin"));
  Simulation simulation = simulation_of(scenario);
  simulation.rank.fault = RankFault::placeholders_kept;
  std::vector<std::size_t> storages;
  run_over_and_over(simulation, 10, [&](const Rank& rank, const PhaseStep& phase) {
    if (phase.kind == PhaseStep::Kind::step_end) storages.push_back(rank.contents().storages);
  });
  REQUIRE(storages.size() == 10);
  CHECK(storages.back() > storages[1]);
}

TEST_CASE("an error ends a run of many steps", "[sim][long]") {
  const Scenario scenario =
      parse_scenario("hazard.json", scenario_text("hazard_h03_no_outer_save"));
  std::int64_t n_phases = 0;
  const auto error = run_over_and_over(simulation_of(scenario), 10,
                                       [&](const Rank&, const PhaseStep&) { ++n_phases; });
  REQUIRE(error.has_value());
  CHECK(error->code == "E-SLOT-EMPTY");
  CHECK(n_phases == 2);  // begin and forward of the first step
}

TEST_CASE("a run of many steps has as many phases as it may, and no more", "[sim][long]") {
  const Scenario scenario =
      parse_scenario("chain.json", scenario_text("verification_06_save_origin"));
  Simulation simulation = simulation_of(scenario);
  simulation.events_max = 10;
  std::int64_t n_phases = 0;
  const auto error =
      run_over_and_over(simulation, 100, [&](const Rank&, const PhaseStep&) { ++n_phases; });
  CHECK_FALSE(error.has_value());
  CHECK(n_phases == 10);
}

TEST_CASE("steps that update the parameters leave nothing behind either", "[sim][long]") {
  const Scenario scenario = parse_scenario(
      "chain.json", scenario_text("verification_06_save_origin",
                                  {scheduled(R"({"actions": ["F0.0", "B0.0", "UPDATE"]})")}));
  std::vector<RankContents> ends;
  const auto error = run_over_and_over(simulation_of(scenario), 1'000,
                                       [&](const Rank& rank, const PhaseStep& phase) {
                                         if (phase.kind == PhaseStep::Kind::step_end)
                                           ends.push_back(rank.contents());
                                       });
  REQUIRE_FALSE(error.has_value());
  REQUIRE(ends.size() == 1'000);
  CHECK(std::count(ends.begin() + 1, ends.end(), ends[1]) == 999);
}
