#include "properties/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "model/flat_map.hpp"
#include "model/random_bits.hpp"

namespace remat {
namespace {

constexpr std::uint64_t case_stream = 0x63617365ULL;
constexpr std::uint64_t block_size = 64;  // cases that a worker takes at a time
constexpr std::uint64_t programs_compared_max = 1'000'000;

/// Tells programs apart: their ops, wiring, layouts and costs.
std::uint64_t program_hash(const Program& program) {
  std::uint64_t lane = 0;
  const auto mix = [&](std::uint64_t word) {
    lane = mixed_bits((lane ^ word) * 0x9e3779b97f4a7c15ULL);
  };
  for (const Statement& statement : program.forwards.front().statements) {
    mix(statement.index());
    if (const auto* region = std::get_if<RegionBegin>(&statement)) {
      mix(region->end);
      mix(region->early_stop ? 1 : 0);
    }
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    mix(op->seed);
    mix(op->kept ? 1 : 0);
    mix(static_cast<std::uint64_t>(op->cost.ns));
    for (const ValueId input : op->inputs) {
      mix(input.index());
      mix(program.values[input].constant.value());
    }
    for (const ValueId output : op->outputs)
      mix(program.values[output].constant.value());
  }
  return lane;
}

/// Cases in a row that one worker ran: up to the end of its part, or to a failure.
struct Stretch {
  std::uint64_t end = 0;  // number past its last case
  std::uint64_t events = 0;
  std::array<std::uint64_t, 2> digest{};
  Coverage coverage;
  std::vector<FirstCase> firsts;  // within the stretch
  std::vector<std::uint64_t> programs;
  std::vector<Failure> failures;  // none, or its last case
};

void add_digest(std::array<std::uint64_t, 2>& to, std::uint64_t number, std::uint64_t digest) {
  to[0] += mixed_bits(digest + mixed_bits(number));
  to[1] += mixed_bits(digest ^ mixed_bits(number + 0x5851f42d4c957f2dULL));
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(&options) {}

  CampaignResult run() {
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < std::max(1U, options_->jobs); ++i)
      workers.emplace_back([this] { work(); });
    watch(workers.size());
    for (std::thread& worker : workers)
      worker.join();
    if (broke_) std::rethrow_exception(broke_);
    // Found behind a block that was given up: not counted, and told all the same.
    for (auto& [first, stretch] : waiting_) {
      if (result_.failures.size() >= options_->failures_max) break;
      for (Failure& failure : stretch.failures)
        result_.failures.push_back(std::move(failure));
    }
    return std::move(result_);
  }

 private:
  /// The calling thread asks whether it is over while the others work.
  void watch(std::size_t n_workers) {
    std::unique_lock lock(mutex_);
    while (n_done_ < n_workers) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      if (!options_->is_over) continue;
      const std::uint64_t cases = result_.cases;
      const std::uint64_t events = result_.events;
      const std::size_t failures = result_.failures.size();
      lock.unlock();
      if (options_->is_over(cases, events, failures)) stop_ = true;
      lock.lock();
    }
  }

  void work() {
    try {
      CaseRunner runner(options_->fault);
      while (!stop_) {
        const std::uint64_t begin = next_.fetch_add(block_size);
        if (begin >= options_->cases_max) break;
        run_block(runner, begin, std::min(begin + block_size, options_->cases_max));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      broke_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    ++n_done_;
    changed_.notify_all();
  }

  void run_block(CaseRunner& runner, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t number = begin; number < end;) {
      Stretch stretch;
      const std::uint64_t first = number;
      while (number < end && stretch.failures.empty()) {
        // Half a block counts for nothing: what is told must be cases in a row.
        if (stop_) return;
        if (number % options_->shards == options_->shard) run_one(runner, number, stretch);
        ++number;
      }
      stretch.end = number;
      take(first, std::move(stretch));
    }
  }

  void run_one(CaseRunner& runner, std::uint64_t number, Stretch& stretch) {
    ChoiceTape tape = tape_of_case(options_->seed, number);
    const GeneratedCase generated = generate_case(tape, {.protocol = options_->protocol});
    CaseOutcome outcome = runner.run(generated);
    stretch.events += static_cast<std::uint64_t>(outcome.n_events);
    add_digest(stretch.digest, number, outcome.digest);
    std::vector<Coverage::Cell> cells =
        stretch.coverage.observe(generated, outcome, runner.trace());
    if (!cells.empty()) stretch.firsts.push_back({std::move(cells), tape.chosen()});
    stretch.programs.push_back(program_hash(generated.scenario.program));
    if (options_->on_case) {
      const std::lock_guard lock(on_case_mutex_);
      options_->on_case(number, tape.chosen(), generated, runner);
    }
    if (outcome.alarm.empty()) return;
    const std::string_view meant = options_->fault.meant;
    if (!meant.empty() && outcome.alarm != meant) return;
    stretch.failures.push_back(
        {number, generated.scenario.protocol, tape.chosen(), std::move(outcome)});
  }

  /// Stretches are added in the order of their cases, whoever ran them when.
  void take(std::uint64_t first, Stretch stretch) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(first, std::move(stretch));
    while (!waiting_.empty() && waiting_.begin()->first == taken_ && !is_full_) {
      add(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
    }
  }

  void add(Stretch& stretch) {
    taken_ = result_.end = stretch.end;
    result_.cases += stretch.coverage.n_cases();
    result_.events += stretch.events;
    result_.digest[0] += stretch.digest[0];
    result_.digest[1] += stretch.digest[1];
    for (FirstCase& first : stretch.firsts) {
      const auto& known = result_.coverage.cells();
      const bool is_new =
          std::any_of(first.cells.begin(), first.cells.end(),
                      [&](const Coverage::Cell& cell) { return known.count(cell) == 0; });
      if (is_new) result_.corpus.push_back(std::move(first));
    }
    result_.coverage.add(stretch.coverage);
    for (const std::uint64_t program : stretch.programs) {
      if (result_.programs_compared == programs_compared_max) break;
      ++result_.programs_compared;
      programs_[static_cast<std::int64_t>(program)] = true;
    }
    result_.distinct_programs = programs_.size();
    for (Failure& failure : stretch.failures)
      result_.failures.push_back(std::move(failure));
    if (result_.failures.size() < options_->failures_max) return;
    is_full_ = true;
    stop_ = true;
  }

  const CampaignOptions* options_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex on_case_mutex_;
  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::map<std::uint64_t, Stretch> waiting_;  // by first case
  std::uint64_t taken_ = 0;                   // cases before this number are in the result
  bool is_full_ = false;
  std::size_t n_done_ = 0;
  FlatMap<bool> programs_;
  CampaignResult result_;
  std::exception_ptr broke_;
};

}  // namespace

ChoiceTape tape_of_case(std::uint64_t seed, std::uint64_t number) {
  return ChoiceTape::from_seed(random_bits(seed, case_stream, number));
}

CampaignResult run_campaign(const CampaignOptions& options) {
  return Campaign(options).run();
}

std::string shown_digest(const std::array<std::uint64_t, 2>& digest) {
  return fmt::format("{:016x}{:016x}", digest[0], digest[1]);
}

}  // namespace remat
