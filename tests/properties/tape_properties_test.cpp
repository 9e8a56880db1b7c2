#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "properties/case_runner.hpp"
#include "properties/case_token.hpp"
#include "properties/counterexample.hpp"
#include "properties/mutants.hpp"
#include "tests/properties/arbitrary_tape.hpp"

// RapidCheck draws and shrinks the same tapes as the campaign: both find and print the same cases.

namespace remat {

TEST_CASE("any tape is a case, and none is an alarm", "[properties]") {
  rc::prop("whatever the choices are", [] {
    const std::vector<std::uint64_t> choices = *arbitrary_tape(120);
    ChoiceTape tape(choices);
    CaseRunner runner;
    const CaseOutcome outcome = runner.run(generate_case(tape, {}));
    RC_LOG() << case_token(choices) << " " << outcome.message;
    RC_ASSERT(outcome.alarm == "");
  });
}

TEST_CASE("RapidCheck finds and shrinks a planted fault on the same tape", "[properties]") {
  const Mutant& mutant = *mutant_named("X3");
  std::vector<std::uint64_t> failing;
  const auto result = rc::detail::checkTestable(
      [&] {
        const std::vector<std::uint64_t> choices = *arbitrary_tape(60);
        ChoiceTape tape(choices);
        CaseRunner runner(fault_of(&mutant));
        const bool fails = runner.run(generate_case(tape, {})).alarm == mutant.caught_by;
        if (fails) failing = choices;
        RC_ASSERT(!fails);
      },
      rc::detail::TestMetadata{}, rc::detail::TestParams{});
  CHECK(result.is<rc::detail::FailureResult>());
  // The last that failed is the smallest that RapidCheck came to.
  ChoiceTape tape(failing);
  CaseRunner runner(fault_of(&mutant));
  CHECK(runner.run(generate_case(tape, {})).alarm == mutant.caught_by);
}

}  // namespace remat
