#include "tests/bench/fuzz_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "properties/campaign.hpp"

namespace remat {
namespace {

constexpr int rounds = 7;
constexpr std::uint64_t seed = 1;
constexpr std::size_t n_cases = 4000;
constexpr std::size_t events_min = 20;
constexpr std::size_t events_max = 80;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Numbers of cases with as many events as are asked for, and their traces one after the other.
struct SmallCases {
  std::vector<std::uint64_t> numbers;
  std::vector<Trace> traces;
  std::uint64_t n_events = 0;
};

SmallCases small_cases() {
  SmallCases small;
  CaseRunner runner;
  for (std::uint64_t number = 0; small.numbers.size() < n_cases; ++number) {
    ChoiceTape tape = tape_of_case(seed, number);
    runner.run(generate_case(tape, {}));
    const std::size_t n = runner.trace().size();
    if (n < events_min || n > events_max) continue;
    small.numbers.push_back(number);
    small.n_events += n;
    small.traces.push_back(runner.take_trace());
    runner = CaseRunner();
  }
  return small;
}

double seconds_to_run(const SmallCases& small) {
  CaseRunner runner;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::uint64_t number : small.numbers) {
    ChoiceTape tape = tape_of_case(seed, number);
    if (!runner.run(generate_case(tape, {})).alarm.empty())
      throw std::runtime_error("a case of the benchmark is an alarm");
  }
  return seconds_since(begin);
}

/// The floor: every event's kind, phase and two of its fields are looked at, no more.
double seconds_to_look_at(const SmallCases& small, std::uint64_t& looked_at) {
  const auto begin = std::chrono::steady_clock::now();
  for (const Trace& trace : small.traces) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const EventView event = trace[i];
      looked_at += static_cast<std::uint64_t>(event.kind()) +
                   static_cast<std::uint64_t>(event.phase()) +
                   static_cast<std::uint64_t>(event.integer(Field::storage).value_or(0)) +
                   static_cast<std::uint64_t>(event.integer(Field::frame).value_or(0));
    }
  }
  return seconds_since(begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<BenchResult> fuzz_bench() {
  const SmallCases small = small_cases();
  std::vector<double> runs;
  std::vector<double> looks;
  std::uint64_t looked_at = 0;
  for (int round = 0; round < rounds; ++round) {
    runs.push_back(seconds_to_run(small));
    looks.push_back(seconds_to_look_at(small, looked_at));
  }
  if (looked_at == 0) throw std::runtime_error("the bare pass saw nothing");
  const auto n_events = static_cast<double>(small.n_events);
  const double rate = n_events / median(runs) / 1e6;
  return {
      {"cases of 20 to 80 events, simulated and checked", rate, "M events/s", ">= 2.5", rate >= 2.5,
       fmt::format("one core, {} cases of {:.0f} events on average, generated, run plain and "
                   "under their protocol, held against every invariant: {:.0f} k cases/s",
                   small.numbers.size(), n_events / static_cast<double>(small.numbers.size()),
                   static_cast<double>(small.numbers.size()) / median(runs) / 1e3)},
      {"the same / a bare pass over the same events", median(runs) / median(looks), "x", "recorded",
       true, "the pass reads kind, phase and two fields of each event"}};
}

}  // namespace remat
