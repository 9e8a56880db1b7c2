#include "properties/mutants.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "properties/mutant_run.hpp"
#include "properties/selfcheck.hpp"
#include "tests/properties/searched_mutants.hpp"
#include "tests/sanitizers.hpp"

namespace remat {
namespace {

constexpr std::uint64_t cases_max = 20'000;

/// Invariants that programs under the protocols of today can break.
const std::vector<std::string> breakable = {
    "unpack_follows_replay", "slot_used_once",      "saved_lists_match",     "version_unchanged",
    "no_use_after_free",     "no_leak_at_step_end", "gradients_equal_plain", "op_counts",
    "rng_position",          "peak_within_bound",   "policy_stable",         "boundaries_match",
    "diagnostics_sound",     "offload_lifecycle",   "stream_order"};

}  // namespace

TEST_CASE("every mutant is caught by the invariant that is meant, and its trace alone shows it",
          "[properties][mutants]") {
  for (const Mutant& mutant : searched_mutants()) {
    CAPTURE(mutant.name, mutant.caught_by);
    const MutantRun run = run_mutant(mutant, {.cases_max = cases_max, .is_over = {}});
    REQUIRE(run.caught);
    CHECK(run.caught->outcome.alarm == mutant.caught_by);
    // Without the fault the case is no alarm.
    ChoiceTape tape(run.caught->shrunk.choices);
    CaseRunner sound;
    CHECK(sound.run(generate_case(tape, {})).alarm.empty());
    // What `check` says of the saved trace, without the program that made it.
    const Verdict verdict = check(run.caught->trace);
    if (mutant.caught_by.starts_with("error:")) {
      CHECK("error:" + run.caught->outcome.code == mutant.caught_by);
      continue;
    }
    const auto is_meant = [&](const Finding& finding) {
      return finding.invariant == mutant.caught_by;
    };
    CHECK(std::any_of(verdict.findings.begin(), verdict.findings.end(), is_meant));
  }
}

TEST_CASE("every invariant that these programs can break has a mutant, and is missed by it",
          "[properties][mutants]") {
  if (built_with_sanitizers) {
    WARN("built with sanitizers: this search is left to the other builds");
    return;
  }
  for (const std::string& invariant : breakable) {
    CAPTURE(invariant);
    REQUIRE(invariant_named(invariant) != nullptr);
    const auto is_meant = [&](const Mutant& row) { return row.caught_by == invariant; };
    const auto mutant = std::find_if(mutants().begin(), mutants().end(), is_meant);
    REQUIRE(mutant != mutants().end());
    const MutantRun run = run_mutant(*mutant, {.cases_max = cases_max, .is_over = {}});
    REQUIRE(run.caught);
    std::vector<std::string> others;
    for (const InvariantRow& row : invariants())
      if (row.name != invariant) others.emplace_back(row.name);
    ChoiceTape tape(run.caught->shrunk.choices);
    CaseRunner without(mutant->fault, others);
    const std::string alarm = without.run(generate_case(tape, {})).alarm;
    // That the gradients are wrong is seen from the result as well as from the trace.
    if (invariant != "gradients_equal_plain") CHECK(alarm != invariant);
  }
}

TEST_CASE("mutants have names of their own, by which they are found", "[properties][mutants]") {
  std::set<std::string_view> numbers;
  for (const Mutant& mutant : mutants()) {
    const std::string_view number = mutant.name.substr(0, mutant.name.find(' '));
    CHECK(numbers.insert(number).second);
    CHECK(mutant_named(mutant.name) == &mutant);
    CHECK(mutant_named(number) == &mutant);
  }
  CHECK(mutant_named("M999") == nullptr);
  CHECK(mutant_named("") == nullptr);
}

TEST_CASE("no scenario plants a fault", "[properties][mutants]") {
  CHECK(ProtocolOptions().fault == ProtocolFault::none);
  CHECK(RankOptions().fault == RankFault::none);
  ChoiceTape tape = ChoiceTape::from_seed(1);
  const GeneratedCase generated = generate_case(tape, {});
  CHECK(generated.scenario.options.fault == ProtocolFault::none);
  CHECK(generated.scenario.rank.fault == RankFault::none);
}

TEST_CASE("two ways of running the same cases are held together by their digests", "[properties]") {
  const DigestOf sound = [](std::uint64_t cases) { return std::to_string(cases); };
  CHECK_FALSE(first_differing_case(sound, sound, 1000));
  for (const std::uint64_t wrong : {0U, 1U, 137U, 998U, 999U}) {
    const DigestOf other = [&](std::uint64_t cases) {
      return cases > wrong ? "other" : std::to_string(cases);
    };
    CHECK(first_differing_case(sound, other, 1000) == wrong);
  }
  CHECK_FALSE(first_differing_case(
      sound, [](std::uint64_t cases) { return cases > 1000 ? "other" : std::to_string(cases); },
      1000));
}

TEST_CASE("a fault of determinism shows where the same cases run twice", "[properties][mutants]") {
  const Mutant& mutant = *mutant_named("X8");
  CampaignOptions options;
  options.fault = mutant.fault;
  const DigestOf digest = digest_of(options);
  CHECK(first_differing_case(digest, digest, 20).has_value());
}

}  // namespace remat
