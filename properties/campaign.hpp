#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/case_runner.hpp"
#include "properties/coverage.hpp"

namespace remat {

struct CampaignOptions {
  std::uint64_t seed = 0;
  std::uint64_t cases_max = UINT64_MAX;
  /// Of `shards` equal parts, the one that is run: cases whose number leaves this remainder.
  std::uint64_t shard = 0;
  std::uint64_t shards = 1;
  unsigned jobs = 1;
  std::string protocol;  // only this one; empty: all
  /// Where it says which alarm is meant, no other ends in a failure.
  PlantedFault fault;
  std::uint64_t failures_max = 1;  // after so many the campaign ends
  /// Asked every few milliseconds by the calling thread; true: the campaign ends. None: never.
  std::function<bool(std::uint64_t cases, std::uint64_t events, std::size_t failures)> is_over;
  /// Gets every case once it has run, one at a time, in no order. None: nobody.
  std::function<void(std::uint64_t number, const std::vector<std::uint64_t>& choices,
                     const GeneratedCase& generated, const CaseRunner& runner)>
      on_case;
};

/// A case that is an alarm.
struct Failure {
  std::uint64_t number = 0;
  std::string protocol;
  std::vector<std::uint64_t> choices;
  CaseOutcome outcome;
};

/// A case that is kept because it reached something first.
struct FirstCase {
  std::vector<Coverage::Cell> cells;
  std::vector<std::uint64_t> choices;
};

struct CampaignResult {
  std::uint64_t cases = 0;
  std::uint64_t end = 0;  // number past the last of them
  std::uint64_t events = 0;
  std::uint64_t distinct_programs = 0;  // among the first `programs_compared`
  std::uint64_t programs_compared = 0;
  std::vector<Failure> failures;  // by number
  Coverage coverage;
  /// A case for each cell of the coverage, the first that reached it.
  std::vector<FirstCase> corpus;
  /// 128 bits over what every case came to: a function of seed and number of cases, of nothing
  /// else.
  std::array<std::uint64_t, 2> digest{};
};

/// The tape of case `number` under a seed.
ChoiceTape tape_of_case(std::uint64_t seed, std::uint64_t number);

/// Runs cases 0, 1, 2 … until there are enough, or enough of them fail, or it is over. What it
/// tells does not depend on `jobs`: the cases are those up to the last that counts, as if they had
/// run one after the other.
CampaignResult run_campaign(const CampaignOptions& options);

/// "0123456789abcdef0123456789abcdef"
std::string shown_digest(const std::array<std::uint64_t, 2>& digest);

}  // namespace remat
