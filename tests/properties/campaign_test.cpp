#include "properties/campaign.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "properties/case_token.hpp"
#include "properties/mutants.hpp"

namespace remat {
namespace {

CampaignResult campaign(std::uint64_t cases, unsigned jobs, std::uint64_t seed = 4) {
  CampaignOptions options;
  options.seed = seed;
  options.cases_max = cases;
  options.jobs = jobs;
  return run_campaign(options);
}

CampaignOptions against(const char* mutant, unsigned jobs, std::uint64_t failures_max) {
  CampaignOptions options;
  options.cases_max = 5000;
  options.jobs = jobs;
  options.fault = mutant_named(mutant)->fault;
  options.failures_max = failures_max;
  return options;
}

std::vector<std::uint64_t> numbers(const CampaignResult& result) {
  std::vector<std::uint64_t> all;
  for (const Failure& failure : result.failures)
    all.push_back(failure.number);
  return all;
}

}  // namespace

TEST_CASE("what a campaign tells depends on seed and cases, not on the number of jobs",
          "[properties]") {
  const CampaignResult one = campaign(1500, 1);
  CHECK(one.cases == 1500);
  CHECK(one.failures.empty());
  for (const unsigned jobs : {2U, 3U}) {
    const CampaignResult other = campaign(1500, jobs);
    CHECK(other.cases == one.cases);
    CHECK(other.events == one.events);
    CHECK(other.digest == one.digest);
    CHECK(other.coverage.cells() == one.coverage.cells());
    REQUIRE(other.corpus.size() == one.corpus.size());
    for (std::size_t i = 0; i < one.corpus.size(); ++i) {
      CHECK(other.corpus[i].choices == one.corpus[i].choices);
      CHECK(other.corpus[i].cells == one.corpus[i].cells);
    }
    CHECK(other.distinct_programs == one.distinct_programs);
  }
  CHECK(campaign(1500, 1, 5).digest != one.digest);
  CHECK(campaign(1499, 1).digest != one.digest);
}

TEST_CASE("a campaign ends with the failure that counts, whoever found it first", "[properties]") {
  const CampaignResult one = run_campaign(against("M25", 1, 3));
  REQUIRE(one.failures.size() == 3);
  CHECK(one.cases == one.failures.back().number + 1);
  const CampaignResult parallel = run_campaign(against("M25", 3, 3));
  CHECK(numbers(parallel) == numbers(one));
  CHECK(parallel.cases == one.cases);
  CHECK(parallel.digest == one.digest);
}

TEST_CASE("shards are parts of the same cases", "[properties]") {
  std::uint64_t cases = 0;
  std::array<std::uint64_t, 2> digest{};
  for (std::uint64_t shard = 0; shard < 3; ++shard) {
    CampaignOptions options;
    options.seed = 4;
    options.cases_max = 1500;
    options.shard = shard;
    options.shards = 3;
    const CampaignResult part = run_campaign(options);
    cases += part.cases;
    digest[0] += part.digest[0];
    digest[1] += part.digest[1];
  }
  CHECK(cases == 1500);
  CHECK(digest == campaign(1500, 1).digest);
}

TEST_CASE("a campaign that is over keeps what it has", "[properties]") {
  CampaignOptions options;
  options.jobs = 2;
  options.is_over = [](std::uint64_t cases, std::uint64_t, std::size_t) { return cases >= 200; };
  const CampaignResult result = run_campaign(options);
  CHECK(result.cases >= 200);
  CHECK(result.digest == campaign(result.cases, 1, 0).digest);
}

TEST_CASE("a campaign of one protocol has no other, and its tokens run without being told",
          "[properties]") {
  CampaignOptions options;
  options.protocol = "torch-reentrant";
  options.cases_max = 300;
  const CampaignResult result = run_campaign(options);
  for (const auto& [cell, n] : result.coverage.cells())
    CHECK(std::get<0>(cell) == "torch-reentrant");
  REQUIRE_FALSE(result.corpus.empty());
  ChoiceTape tape(choices_of(case_token(result.corpus.front().choices)));
  CHECK(generate_case(tape, {}).scenario.protocol == "torch-reentrant");
}

TEST_CASE("a corpus holds a case for each cell of coverage", "[properties]") {
  const CampaignResult result = campaign(3000, 1);
  Coverage of_corpus;
  CaseRunner runner;
  for (const FirstCase& first : result.corpus) {
    ChoiceTape tape(first.choices);
    const GeneratedCase generated = generate_case(tape, {});
    const CaseOutcome outcome = runner.run(generated);
    of_corpus.observe(generated, outcome, runner.trace());
  }
  CHECK(result.corpus.size() <= result.coverage.cells().size());
  CHECK(of_corpus.cells().size() == result.coverage.cells().size());
}

TEST_CASE("a healthy campaign has no complaint, a crippled one is told what it lacks",
          "[properties]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("not run under a sanitizer: 20,000 cases would take minutes");
#else
  CHECK(health_complaints(campaign(10'000, 2).coverage).empty());
  // Without negative edits no error is reached, and without a feature its share is 0.
  Coverage crippled;
  CaseRunner runner;
  const std::uint32_t without = 1U << static_cast<std::uint32_t>(Feature::nesting);
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    ChoiceTape tape = tape_of_case(4, number);
    const GeneratedCase generated = generate_case(tape, {.without = without, .legal_only = true});
    const CaseOutcome outcome = runner.run(generated);
    crippled.observe(generated, outcome, runner.trace());
  }
  const std::vector<std::string> complaints = health_complaints(crippled);
  const auto complains = [&](const std::string& text) {
    return std::find(complaints.begin(), complaints.end(), text) != complaints.end();
  };
  CHECK(complains("0 of 10000 cases have the feature nesting; expected 30 to 70 %"));
  CHECK(complains("'nested_replay' happened in 0 of 10000 cases; expected 1 in 1,000"));
  CHECK(complains("0 of 10000 cases ended in E-COUNT; expected 1 in 2,000"));
#endif
}

}  // namespace remat
