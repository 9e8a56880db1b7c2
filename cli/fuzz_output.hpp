#pragma once

#include <string>
#include <vector>

#include "cli/fuzz_command.hpp"
#include "properties/campaign.hpp"
#include "properties/counterexample.hpp"

namespace remat {

/// Everything that is told of a campaign.
struct FuzzReport {
  CampaignResult result;
  std::vector<Counterexample> counterexamples;
  std::size_t n_failures = 0;          // found; told are those that there was time to shrink
  std::vector<std::string> saved;      // paths
  std::vector<std::string> unhealthy;  // what such a campaign must have seen, and has not
  std::string mutant;
  std::uint64_t seed = 0;
  std::uint64_t corpus_cases = 0;  // run before the campaign
  double seconds = 0;
  bool was_interrupted = false;
};

/// Why the exit status is 1; empty where it is not.
std::string why_of(const FuzzReport& report);

std::string fuzz_json(const FuzzReport& report);
std::string fuzz_text(const FuzzOptions& options, const FuzzReport& report, bool colours);
/// One test case for each protocol and invariant (JUnit's XML, as CI systems read it).
std::string fuzz_junit(const FuzzReport& report);
/// SARIF 2.1.0: a result for each failure.
std::string fuzz_sarif(const FuzzReport& report);

}  // namespace remat
