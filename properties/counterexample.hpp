#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/campaign.hpp"
#include "properties/shrink.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A failing case, made small and told.
struct Counterexample {
  std::uint64_t number = 0;  // of the case that was found
  std::string protocol;
  Shrunk shrunk;
  std::size_t n_regions_before = 0;
  std::size_t n_choices_before = 0;
  std::string token;
  CaseOutcome outcome;              // of the small case
  std::string program;              // as a person reads it
  std::string scenario;             // as a file
  std::vector<std::string> events;  // JSON lines of those that prove it
  Trace trace;
};

/// Shrinks the failure and runs what is left once more.
Counterexample counterexample_of(const Failure& failure, const ShrinkOptions& options);

}  // namespace remat
