#pragma once

#include <vector>

#include "tests/bench/bench_report.hpp"

namespace remat {

/// Whole cases of a campaign, from the tape to the verdict, over those of 20 to 80 events.
std::vector<BenchResult> fuzz_bench();

}  // namespace remat
