#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace remat {

/// One measured figure, held against a peer or a floor of the same run.
struct BenchResult {
  std::string name;
  double value = 0;
  std::string unit;
  std::string target;  // as a person reads it: ">= 0.10"
  bool met = true;
  std::string detail;  // what was divided by what
};

/// CPU seconds of this thread that one call takes: the least of `rounds`, since noise only adds.
double cpu_seconds(int rounds, const std::function<void()>& work);

/// What ran where: processor, cores, compiler, build type.
std::string machine_text();

std::string bench_text(const std::vector<BenchResult>& results);
std::string bench_json(const std::vector<BenchResult>& results);

/// Reading and checking traces.
std::vector<BenchResult> trace_bench();

}  // namespace remat
