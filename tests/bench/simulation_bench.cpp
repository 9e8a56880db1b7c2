#include "tests/bench/simulation_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "properties/invariants/checker.hpp"
#include "sim/simulation.hpp"
#include "traces/trace.hpp"

namespace remat {
namespace {

constexpr int rounds = 5;
constexpr int repetitions = 300;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::vector<BenchResult> simulation_bench() {
  const Scenario scenario =
      read_scenario(std::string(REMATSIM_SOURCE_DIR) + "/sim/scenarios/two_blocks.json");
  std::vector<double> rates;
  std::vector<double> checked_rates;
  for (int round = 0; round < rounds; ++round) {
    std::size_t n_events = 0;
    double simulating = 0;
    double checking = 0;
    for (int i = 0; i < repetitions; ++i) {
      Trace trace;
      const auto begin = std::chrono::steady_clock::now();
      simulate(simulation_of(scenario), trace);
      simulating += seconds_since(begin);
      const auto check_begin = std::chrono::steady_clock::now();
      Checker checker;
      for (std::size_t at = 0; at < trace.size(); ++at)
        checker.observe(trace[at]);
      checker.finish();
      checking += seconds_since(check_begin);
      n_events += trace.size();
    }
    rates.push_back(static_cast<double>(n_events) / simulating);
    checked_rates.push_back(static_cast<double>(n_events) / (simulating + checking));
  }
  std::sort(rates.begin(), rates.end());
  std::sort(checked_rates.begin(), checked_rates.end());
  return {{"whole simulation with ledger, values and trace", rates[rounds / 2] / 1e6, "M events/s",
           "recorded", true,
           fmt::format("sim/scenarios/two_blocks.json, its plain run included; {:.2f} M events/s "
                       "with all invariants over the trace",
                       checked_rates[rounds / 2] / 1e6)}};
}

}  // namespace remat
