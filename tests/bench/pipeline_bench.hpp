#pragma once

#include <vector>

#include "tests/bench/bench_report.hpp"

namespace remat {

/// A large pipeline schedule with replay: its lists made, run and summed up.
std::vector<BenchResult> pipeline_bench();

}  // namespace remat
