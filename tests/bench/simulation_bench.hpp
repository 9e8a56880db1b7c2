#pragma once

#include <vector>

#include "tests/bench/bench_report.hpp"

namespace remat {

/// Whole simulations, with ledger, values and trace, and the plain run that they are compared with.
std::vector<BenchResult> simulation_bench();

}  // namespace remat
