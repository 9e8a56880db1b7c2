#pragma once

#include <vector>

#include "tests/bench/bench_report.hpp"

namespace remat {

/// The discrete-event engine against std::priority_queue, SimGrid and simpy. A peer that is not
/// installed is said to be so, and counts as met.
std::vector<BenchResult> engine_bench();

}  // namespace remat
