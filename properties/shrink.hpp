#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/case_runner.hpp"

namespace remat {

/// A failing case made smaller.
struct Shrunk {
  std::vector<std::uint64_t> choices;
  std::uint64_t n_runs = 0;  // cases that were tried
  /// No region, statement or single choice can be taken away or set to 0 and the case still fails
  /// alike. False where the search was cut short.
  bool is_minimal = false;
  std::size_t n_regions = 0;
  std::size_t n_choices = 0;  // that are not 0
};

struct ShrinkOptions {
  PlantedFault fault;
  std::string protocol;  // of the campaign, where it had only one
  std::uint64_t runs_max = 20'000;
  std::function<bool()> is_over;  // asked now and then; none: never
};

/// The smallest tape that it finds, by length and then by choices, whose case is the same alarm.
/// Deterministic, and again applied to what it gave it changes nothing.
Shrunk shrink(const std::vector<std::uint64_t>& choices, const std::string& alarm,
              const ShrinkOptions& options);

}  // namespace remat
