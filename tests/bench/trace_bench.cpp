#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "properties/invariants/checker.hpp"
#include "tests/bench/bench_report.hpp"
#include "tests/bench/measured_process.hpp"
#include "tests/bench/repeated_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t trace_bytes_min = 200'000'000;
constexpr std::size_t events_at_once = 2048;
constexpr int rounds = 5;

std::vector<std::string> recordings() {
  std::vector<std::string> paths;
  for (const auto& entry :
       fs::directory_iterator(fs::path(REMATSIM_SOURCE_DIR) / "traces/recorded"))
    if (entry.path().extension() == ".gz") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw std::runtime_error("traces/recorded holds no recordings");
  return paths;
}

/// The floor: simdjson on-demand over the whole file, of every line the `kind` and nothing else.
std::int64_t count_kinds(const simdjson::padded_string& bytes) {
  simdjson::ondemand::parser parser;
  std::int64_t n = 0;
  std::string_view rest = bytes;
  const char* const readable_end = bytes.data() + bytes.size() + simdjson::SIMDJSON_PADDING;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto readable = static_cast<std::size_t>(readable_end - line.data());
    auto event = parser.iterate(simdjson::padded_string_view(line.data(), line.size(), readable));
    n += std::string_view(event["kind"]).empty() ? 0 : 1;
  }
  return n;
}

std::int64_t read_all(const std::string& path) {
  TraceReader reader(path);
  Trace block;
  std::int64_t n = 0;
  while (const std::size_t got = reader.read(block, events_at_once)) {
    n += static_cast<std::int64_t>(got);
    block.drop_events();
  }
  return n;
}

BenchResult reading_against_simdjson(double reading, double floor, double megabytes) {
  const double ratio = floor / reading;
  return {
      "read JSONL / simdjson kinds",
      ratio,
      "x speed",
      ">= 0.10",
      ratio >= 0.10,
      fmt::format("reader {:.0f} MB/s, simdjson on-demand pass over every line's kind {:.0f} MB/s",
                  megabytes / reading, megabytes / floor)};
}

BenchResult invariants_against_reading(double checking, double reading, std::int64_t n_events) {
  const double ratio = checking / reading;
  return {"13 invariants / read JSONL",
          ratio,
          "x time",
          "<= 1.00",
          ratio <= 1.0,
          fmt::format("invariants {:.0f} ns an event, reading {:.0f} ns an event, {} events",
                      1e9 * checking / static_cast<double>(n_events),
                      1e9 * reading / static_cast<double>(n_events), n_events)};
}

/// Both programs in turn, so that a machine that gets slower slows both.
std::vector<BenchResult> check_against_md5sum(const std::string& path, double megabytes) {
  std::vector<double> ratios;
  std::vector<std::int64_t> checks;
  std::vector<std::int64_t> sums;
  std::int64_t peak_bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    const ProcessCost sum = measured_process({"md5sum", path});
    const ProcessCost check = measured_process({REMATSIM_PROGRAM, "check", path, "--json"});
    if (check.exit_code > 1) throw std::runtime_error("rematsim check failed on the bench's trace");
    ratios.push_back(static_cast<double>(sum.cpu_us) / static_cast<double>(check.cpu_us));
    checks.push_back(check.cpu_us);
    sums.push_back(sum.cpu_us);
    peak_bytes = std::max(peak_bytes, check.peak_bytes);
  }
  for (auto* times : {&checks, &sums})
    std::sort(times->begin(), times->end());
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  const double peak = static_cast<double>(peak_bytes) / (1 << 20);
  return {
      {"rematsim check / md5sum", median, "x speed", ">= 0.125", median >= 0.125,
       fmt::format(
           "whole processes, CPU time, {:.0f} MB: check {:.2f} s, md5sum {:.2f} s (medians of {})",
           megabytes, 1e-6 * static_cast<double>(checks[checks.size() / 2]),
           1e-6 * static_cast<double>(sums[sums.size() / 2]), rounds)},
      {"rematsim check, peak memory", peak, "MiB", "<= 256", peak <= 256,
       "the largest of those processes, by the operating system's account"}};
}

}  // namespace

std::vector<BenchResult> trace_bench() {
  const TemporaryFolder folder;
  const fs::path path = folder / "repeated.jsonl";
  const std::int64_t n_events = write_repeated_trace(recordings(), trace_bytes_min, path.string());
  const double megabytes = static_cast<double>(fs::file_size(path)) / 1e6;
  std::vector<BenchResult> results;
  double reading = 0;
  {
    const simdjson::padded_string bytes = simdjson::padded_string::load(path.string());
    if (count_kinds(bytes) != n_events)
      throw std::runtime_error("the two passes see other numbers of events");
    const double floor = cpu_seconds(rounds, [&] { count_kinds(bytes); });
    reading = cpu_seconds(rounds, [&] { read_all(path.string()); });
    results.push_back(reading_against_simdjson(reading, floor, megabytes));
  }
  {
    const Trace trace = read_trace(path.string());
    const double checking = cpu_seconds(rounds, [&] { check(trace); });
    results.push_back(invariants_against_reading(checking, reading, n_events));
    const double each =
        static_cast<double>(trace.bytes_in_memory()) / static_cast<double>(n_events);
    results.push_back(
        {"trace in memory", each, "B/event", "<= 96", each <= 96, "events and all side tables"});
  }
  for (BenchResult& result : check_against_md5sum(path.string(), megabytes))
    results.push_back(std::move(result));
  return results;
}

}  // namespace remat
