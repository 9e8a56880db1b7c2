#include "tests/bench/engine_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "model/random_bits.hpp"
#include "sim/engine.hpp"
#include "tests/bench/measured_process.hpp"
#include "tests/traces/temporary_folder.hpp"

namespace remat {
namespace {

namespace fs = std::filesystem;

constexpr int rounds = 7;
constexpr std::size_t pending_few = 256;
constexpr std::size_t pending_many = 1'000'000;
constexpr std::uint64_t events_few = 3'000'000;
constexpr std::uint64_t events_many = 1'000'000;  // each pending event moves once a round
constexpr std::uint64_t engine_timeouts = 10'000'000;
constexpr std::uint64_t peer_timeouts = 500'000;

/// What both queues do, event by event: where the next one lies is all that is worked out.
class HoldModel {
 public:
  HoldModel() {
    for (std::size_t i = 0; i < delays_.size(); ++i)
      delays_[i] = 1 + static_cast<std::int64_t>(random_bits(1, 0, i) % 1'000'000);
  }
  Duration delay(std::uint64_t sequence) const { return {delays_[sequence % delays_.size()]}; }
  /// The events that are pending at first.
  Event first(std::uint64_t i) const {
    return {Instant{} + delay(i), static_cast<std::uint32_t>(i % 8),
            static_cast<std::uint32_t>(i / 8 % 4), i, i};
  }

 private:
  std::array<std::int64_t, 4096> delays_{};
};

class HoldHandler : public EventHandler {
 public:
  explicit HoldHandler(const HoldModel& model) : model_(model) {}
  void handle(Engine& engine, const Event& event) override {
    const Duration delay = model_.delay(event.sequence + event.payload);
    engine.schedule(event.when + delay, event.rank, event.stream, event.payload);
    sum += event.payload * static_cast<std::uint64_t>(event.when.ns);
  }
  void footprint(const Event&, Footprint&) const override {}

  std::uint64_t sum = 0;  // of what was handed over when

 private:
  const HoldModel& model_;
};

class EngineHold {
 public:
  EngineHold(const HoldModel& model, std::size_t n_pending) : handler_(model) {
    for (std::size_t i = 0; i < n_pending; ++i) {
      const Event event = model.first(i);
      engine_.schedule(event.when, event.rank, event.stream, event.payload);
    }
  }
  void run(std::uint64_t n_events) { engine_.run(n_events); }
  std::uint64_t sum() const { return handler_.sum; }

 private:
  HoldHandler handler_;
  ByOrder by_order_;
  Engine engine_{handler_, by_order_};
};

/// Compilers make of one comparison a branch and of another none, which is fast for few or for many
/// events. So the bare queue is run with both, and the Engine held against the better one.
struct LaterByKey {
  bool operator()(const Event& a, const Event& b) const { return comes_before(b, a); }
};
struct LaterByTuple {
  bool operator()(const Event& a, const Event& b) const {
    return std::tuple(a.when, a.rank, a.stream, a.sequence) >
           std::tuple(b.when, b.rank, b.stream, b.sequence);
  }
};

template <typename Later>
class BareHold {
 public:
  BareHold(const HoldModel& model, std::size_t n_pending) : model_(model), n_pushed_(n_pending) {
    for (std::size_t i = 0; i < n_pending; ++i)
      queue_.push(model.first(i));
  }
  void run(std::uint64_t n_events) {
    for (std::uint64_t n = 0; n < n_events; ++n) {
      const Event event = queue_.top();
      queue_.pop();
      const Duration delay = model_.delay(event.sequence + event.payload);
      queue_.push({event.when + delay, event.rank, event.stream, n_pushed_++, event.payload});
      sum_ += event.payload * static_cast<std::uint64_t>(event.when.ns);
    }
  }
  std::uint64_t sum() const { return sum_; }

 private:
  const HoldModel& model_;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::uint64_t n_pushed_;
  std::uint64_t sum_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Medians, in nanoseconds an event.
struct HoldTimes {
  double engine = 0;
  double by_key = 0;
  double by_tuple = 0;
};

template <typename Hold>
double ns_per_event(Hold& hold, std::uint64_t n_events) {
  return 1e9 * cpu_seconds(1, [&] { hold.run(n_events); }) / static_cast<double>(n_events);
}

/// All three in turn, so that a machine that gets slower slows all.
HoldTimes hold_times(const HoldModel& model, std::size_t n_pending, std::uint64_t n_events) {
  EngineHold engine(model, n_pending);
  BareHold<LaterByKey> by_key(model, n_pending);
  BareHold<LaterByTuple> by_tuple(model, n_pending);
  std::array<std::vector<double>, 3> ns;
  for (int round = 0; round <= rounds; ++round) {
    const double engine_ns = ns_per_event(engine, n_events);
    const double by_key_ns = ns_per_event(by_key, n_events);
    const double by_tuple_ns = ns_per_event(by_tuple, n_events);
    if (round == 0) continue;  // memory and branch predictor are not warm yet
    ns[0].push_back(engine_ns);
    ns[1].push_back(by_key_ns);
    ns[2].push_back(by_tuple_ns);
  }
  if (engine.sum() != by_key.sum() || engine.sum() != by_tuple.sum())
    throw std::runtime_error("the engine and the bare queue saw other events");
  return {median(ns[0]), median(ns[1]), median(ns[2])};
}

std::vector<BenchResult> hold_results() {
  const HoldModel model;
  const HoldTimes few = hold_times(model, pending_few, events_few);
  const HoldTimes many = hold_times(model, pending_many, events_many);
  const double ratio = std::min(few.by_key, few.by_tuple) / few.engine;
  const double growth = many.engine / few.engine;
  const double growth_by_key = many.by_key / few.by_key;
  const double growth_by_tuple = many.by_tuple / few.by_tuple;
  const double relative = growth / std::min(growth_by_key, growth_by_tuple);
  return {
      {"engine / bare std::priority_queue", ratio, "x speed", ">= 0.60", ratio >= 0.60,
       fmt::format("hold model, {} pending: engine {:.1f} ns an event, bare queue {:.1f} (key by "
                   "key) and {:.1f} (as tuples), the faster counts",
                   pending_few, few.engine, few.by_key, few.by_tuple)},
      {"engine, growth / bare queue's growth", relative, "x", "<= 1.30", relative <= 1.3,
       fmt::format("ns an event at {} pending / at {}: engine {:.0f} / {:.1f} = {:.1f}, bare queue "
                   "{:.1f} and {:.1f}, the lesser counts",
                   pending_many, pending_few, many.engine, few.engine, growth, growth_by_key,
                   growth_by_tuple)}};
}

class TimeoutHandler : public EventHandler {
 public:
  void handle(Engine& engine, const Event& event) override {
    if (event.payload == 0) return;
    engine.schedule(event.when + Duration{1}, event.rank, event.stream, event.payload - 1);
  }
  void footprint(const Event&, Footprint&) const override {}
};

/// CPU seconds of so many timeouts, one after another.
double engine_timeout_seconds(std::uint64_t n) {
  TimeoutHandler handler;
  ByOrder by_order;
  Engine engine(handler, by_order);
  engine.schedule({1}, 0, 0, n - 1);
  const double seconds = cpu_seconds(1, [&] { engine.run(n); });
  if (engine.now() != Instant{static_cast<std::int64_t>(n)})
    throw std::runtime_error("the engine lost timeouts");
  return seconds;
}

/// CPU seconds of the program with that many timeouts less those with none: its start is left out.
double peer_timeout_seconds(const std::vector<std::string>& command, std::uint64_t n) {
  std::vector<std::string> none = command;
  std::vector<std::string> all = command;
  none.push_back("0");
  all.push_back(std::to_string(n));
  const ProcessCost start = measured_process(none);
  const ProcessCost whole = measured_process(all);
  if (start.exit_code != 0 || whole.exit_code != 0)
    throw std::runtime_error(command.back() + " failed");
  return 1e-6 * static_cast<double>(whole.cpu_us - start.cpu_us);
}

BenchResult timeouts_against(const std::string& peer, const std::vector<std::string>& command) {
  const std::string name = "engine / " + peer + ", timeouts";
  if (command.empty()) return {name, 0, "x speed", ">= 7", true, peer + " is not installed"};
  std::vector<double> ratios;
  std::vector<double> engine_ns;
  std::vector<double> peer_ns;
  for (int round = 0; round < rounds; ++round) {
    const double ours = engine_timeout_seconds(engine_timeouts);
    const double theirs = peer_timeout_seconds(command, peer_timeouts);
    engine_ns.push_back(1e9 * ours / static_cast<double>(engine_timeouts));
    peer_ns.push_back(1e9 * theirs / static_cast<double>(peer_timeouts));
    ratios.push_back(peer_ns.back() / engine_ns.back());
  }
  const double ratio = median(ratios);
  return {name,
          ratio,
          "x speed",
          ">= 7",
          ratio >= 7,
          fmt::format("one after another: engine {:.1f} ns each, {} {:.0f} (medians of {})",
                      median(engine_ns), peer, median(peer_ns), rounds)};
}

std::string source(const std::string& name) {
  return (fs::path(REMATSIM_SOURCE_DIR) / "tests/bench" / name).string();
}

/// How to start simpy's timeouts; empty where no Python here has it.
std::vector<std::string> simpy_command() {
  constexpr int no_simpy = 3;
  // A Python of one's own in the PATH does not see Debian's packages.
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    std::vector<std::string> command = {python, source("simpy_timeouts.py"), "0"};
    int exit_code = no_simpy;
    try {
      exit_code = measured_process(command).exit_code;
    } catch (const std::runtime_error&) {
      continue;  // there is no such Python
    }
    if (exit_code == no_simpy) continue;
    if (exit_code != 0) throw std::runtime_error("simpy_timeouts.py failed");
    command.pop_back();
    return command;
  }
  return {};
}

/// The same of SimGrid, compiled to `program`; empty where it is not installed.
std::vector<std::string> simgrid_command(const std::string& program) {
  if (!fs::exists("/usr/include/simgrid/s4u.hpp")) return {};
  const ProcessCost compiled = measured_process(
      {"c++", "-std=c++17", "-O2", source("simgrid_timeouts.cpp"), "-lsimgrid", "-o", program});
  if (compiled.exit_code != 0) throw std::runtime_error("simgrid_timeouts.cpp does not compile");
  return {program};
}

}  // namespace

std::vector<BenchResult> engine_bench() {
  std::vector<BenchResult> results = hold_results();
  const TemporaryFolder folder;
  results.push_back(timeouts_against("SimGrid", simgrid_command(folder / "simgrid_timeouts")));
  results.push_back(timeouts_against("simpy", simpy_command()));
  return results;
}

}  // namespace remat
