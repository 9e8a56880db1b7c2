#include "tests/bench/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

namespace remat {
namespace {

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

double cpu_seconds(int rounds, const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double begin = thread_cpu_seconds();
    work();
    least = std::min(least, thread_cpu_seconds() - begin);
  }
  return least;
}

std::string machine_text() {
  return fmt::format("{}, {} cores, {} {}, {}", processor(), std::thread::hardware_concurrency(),
#ifdef __clang__
                     "clang++",
#else
                     "g++",
#endif
                     __VERSION__, REMATSIM_BUILD_TYPE);
}

std::string bench_text(const std::vector<BenchResult>& results) {
  std::string text = machine_text() + "\n";
  for (const BenchResult& result : results) {
    text += fmt::format("{:<44} {:>10.3f} {:<10} {:<12} {}\n{:>4}{}\n", result.name, result.value,
                        result.unit, result.target,
                        result.target.empty() ? ""
                        : result.met          ? "met"
                                              : "MISSED",
                        "", result.detail);
  }
  return text;
}

std::string bench_json(const std::vector<BenchResult>& results) {
  nlohmann::ordered_json json = {{"version", 1}, {"machine", machine_text()}};
  json["results"] = nlohmann::ordered_json::array();
  for (const BenchResult& result : results) {
    json["results"].push_back({{"name", result.name},
                               {"value", result.value},
                               {"unit", result.unit},
                               {"target", result.target},
                               {"met", result.met},
                               {"detail", result.detail}});
  }
  return json.dump(2) + "\n";
}

}  // namespace remat
