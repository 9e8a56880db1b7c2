#include "properties/shrink.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "properties/campaign.hpp"
#include "properties/case_token.hpp"
#include "properties/mutants.hpp"
#include "tests/properties/searched_mutants.hpp"

namespace remat {
namespace {

using Choices = std::vector<std::uint64_t>;

Failure first_failure(const Mutant& mutant, std::uint64_t seed) {
  CampaignOptions options;
  options.seed = seed;
  options.cases_max = 20'000;
  options.protocol = mutant.protocol;
  options.fault = fault_of(&mutant);
  CampaignResult result = run_campaign(options);
  REQUIRE(result.failures.size() == 1);
  return std::move(result.failures.front());
}

ShrinkOptions options_for(const Mutant& mutant) {
  return {.fault = fault_of(&mutant), .protocol = std::string(mutant.protocol), .is_over = {}};
}

std::string alarm_of(const Choices& choices, const Mutant& mutant, ChoiceTape& tape) {
  tape = ChoiceTape(choices);
  CaseRunner runner(fault_of(&mutant));
  return runner.run(generate_case(tape, {.protocol = std::string(mutant.protocol)})).alarm;
}

Choices without(Choices choices, std::size_t begin, std::size_t end) {
  choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(begin),
                choices.begin() + static_cast<std::ptrdiff_t>(std::min(end, choices.size())));
  return choices;
}

}  // namespace

TEST_CASE("a shrunk case fails alike, and nothing more can be taken away from it",
          "[properties][mutants]") {
  for (const Mutant& mutant : searched_mutants()) {
    CAPTURE(mutant.name);
    const Failure failure = first_failure(mutant, 3);
    const Shrunk shrunk = shrink(failure.choices, failure.outcome.alarm, options_for(mutant));
    CHECK(shrunk.is_minimal);
    CHECK(shrunk.choices.size() <= failure.choices.size());
    CHECK(shrunk.n_regions <= 3);
    CHECK(shrunk.n_choices <= 13);
    ChoiceTape tape(shrunk.choices);
    REQUIRE(alarm_of(shrunk.choices, mutant, tape) == mutant.caught_by);
    // 1-minimal: no part of the program and no choice can go, no choice can be 0.
    for (const ChoiceTape::Span& span : std::vector(tape.spans())) {
      if (span.begin >= shrunk.choices.size()) continue;
      ChoiceTape other(shrunk.choices);
      const Choices smaller = without(shrunk.choices, span.begin, span.end);
      CHECK(alarm_of(smaller, mutant, other) != mutant.caught_by);
    }
    for (std::size_t at = 0; at < shrunk.choices.size(); ++at) {
      ChoiceTape other(shrunk.choices);
      Choices zero = shrunk.choices;
      if (std::exchange(zero[at], 0) != 0 && at > 0)  // the first names the protocol
        CHECK(alarm_of(zero, mutant, other) != mutant.caught_by);
    }
  }
}

TEST_CASE("a case whose smallest tape is empty is shrunk to it", "[properties]") {
  const Mutant& mutant = *mutant_named("X3");
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Failure failure = first_failure(mutant, seed);
    const Shrunk shrunk = shrink(failure.choices, failure.outcome.alarm, options_for(mutant));
    CHECK(shrunk.choices.empty());
    CHECK(shrunk.is_minimal);
  }
}

TEST_CASE("shrinking again changes nothing, and it is a function of its input", "[properties]") {
  const Mutant& mutant = *mutant_named("M24");
  const Failure failure = first_failure(mutant, 1);
  const Shrunk once = shrink(failure.choices, failure.outcome.alarm, options_for(mutant));
  CHECK(shrink(failure.choices, failure.outcome.alarm, options_for(mutant)).choices ==
        once.choices);
  CHECK(shrink(once.choices, failure.outcome.alarm, options_for(mutant)).choices == once.choices);
}

TEST_CASE("a search that is cut short says so, and keeps a case that fails", "[properties]") {
  const Mutant& mutant = *mutant_named("M24");
  const Failure failure = first_failure(mutant, 1);
  ShrinkOptions options = options_for(mutant);
  options.runs_max = 5;
  const Shrunk shrunk = shrink(failure.choices, failure.outcome.alarm, options);
  CHECK_FALSE(shrunk.is_minimal);
  CHECK(shrunk.n_runs <= 5);
  ChoiceTape tape(shrunk.choices);
  CHECK(alarm_of(shrunk.choices, mutant, tape) == failure.outcome.alarm);
}

}  // namespace remat
