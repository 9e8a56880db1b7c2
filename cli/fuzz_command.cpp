#include "cli/fuzz_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/asked_mutant.hpp"
#include "cli/campaign_words.hpp"
#include "cli/console.hpp"
#include "cli/counterexample_output.hpp"
#include "cli/fuzz_output.hpp"
#include "cli/interrupt.hpp"
#include "cli/stopwatch.hpp"
#include "cli/written_files.hpp"
#include "model/errors.hpp"
#include "model/flat_map.hpp"
#include "properties/case_token.hpp"
#include "properties/program_text.hpp"
#include "properties/selfcheck.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario_writer.hpp"
#include "traces/output_file.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

namespace fs = std::filesystem;

constexpr double budget_otherwise = 10;  // seconds, where neither cases nor a budget are named
// What is found late is shrunk all the same, as far as this goes: the budget is kept within a
// second.
constexpr double shrink_seconds_past_the_budget = 0.7;
constexpr double progress_seconds = 0.5;

void check_protocol(const std::string& name) {
  if (name.empty() || make_protocol(name, {}) != nullptr) return;
  throw InputError("unknown protocol '" + name + "'; expected one of " + known_protocols());
}

using Choices = std::vector<std::uint64_t>;

/// The cases that a folder holds, in the order of their names. One that another version of the
/// generator made, or that nobody can read, is said and left out: it must not stop a campaign.
std::vector<Choices> corpus_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".case")
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Choices> cases;
  for (const std::string& path : paths) {
    try {
      cases.push_back(case_of(path));
    } catch (const InputError& error) {
      fmt::print(stderr, "left out: {}\n", error.what());
    }
  }
  return cases;
}

void save_corpus(const std::string& folder, const std::vector<Choices>& cases) {
  for (const Choices& choices : cases) {
    const std::string token = case_token(choices);
    const std::string name = fmt::format("{:016x}.case", mixed_text(token));
    write_file((fs::path(folder) / name).string(), token + "\n");
  }
}

class FuzzRun {
 public:
  explicit FuzzRun(const FuzzOptions& options)
      : options_(&options), mutant_(asked_mutant(options.mutant)) {
    check_protocol(options.protocol);
    if (!options.budget.empty()) {
      budget_ = seconds_of(options.budget);
    } else if (!options.cases) {
      budget_ = budget_otherwise;
    }
    report_.seed = seed_of(options.seed);
    if (mutant_ != nullptr) report_.mutant = mutant_->name;
  }

  FuzzReport run() {
    catch_interrupts();
    for (const std::string& folder : {options_->emit, options_->save, options_->corpus})
      if (!folder.empty()) make_folder(folder);
    std::vector<Failure> failures = run_corpus();
    if (failures.size() < options_->max_failures) {
      report_.result = run_campaign(campaign(options_->max_failures - failures.size()));
      for (Failure& failure : report_.result.failures)
        failures.push_back(std::move(failure));
    }
    if (progress_told_) show_progress("");
    report_.seconds = watch_.seconds();
    report_.n_failures = failures.size();
    for (const Failure& failure : failures) {
      // The first is told in any case; for the others only while there is time.
      if (!report_.counterexamples.empty() && is_past_telling()) break;
      tell(failure);
    }
    if (!options_->corpus.empty()) save_corpus(options_->corpus, new_cases());
    const bool is_whole = options_->protocol.empty() && mutant_ == nullptr;
    if (is_whole) report_.unhealthy = health_complaints(report_.result.coverage);
    report_.was_interrupted = is_interrupted();
    return std::move(report_);
  }

 private:
  std::string protocol() const {
    if (!options_->protocol.empty() || mutant_ == nullptr) return options_->protocol;
    return std::string(mutant_->protocol);
  }

  CampaignOptions campaign(std::uint64_t failures_max) {
    CampaignOptions made;
    made.seed = report_.seed;
    made.cases_max = options_->cases.value_or(UINT64_MAX);
    std::tie(made.shard, made.shards) = shard_of(options_->shard);
    made.jobs = jobs_of(options_->jobs);
    made.protocol = protocol();
    made.fault = fault_of(mutant_);
    made.failures_max = failures_max;
    made.is_over = [this](std::uint64_t cases, std::uint64_t events, std::size_t n_failures) {
      tell_progress(cases, events, n_failures);
      return is_over();
    };
    if (!options_->emit.empty()) {
      made.on_case = [this](std::uint64_t number, const Choices& choices,
                            const GeneratedCase& generated,
                            const CaseRunner& runner) { emit(number, choices, generated, runner); };
    }
    return made;
  }

  void emit(std::uint64_t number, const Choices& choices, const GeneratedCase& generated,
            const CaseRunner& runner) const {
    const std::string path =
        (fs::path(options_->emit) / fmt::format("case-{:06}", number)).string();
    const std::string_view code = generated.expected_code();
    const std::string about = code.empty() ? "a legal case" : fmt::format("must end in {}", code);
    write_file(
        path + ".scenario.json",
        scenario_json(generated.scenario, {.about = about, .fuzz_case = case_token(choices)}));
    write_trace(runner.trace(), path + ".jsonl");
  }

  void tell_progress(std::uint64_t cases, std::uint64_t events, std::size_t n_failures) {
    if (!options_->progress || watch_.seconds() < next_progress_) return;
    next_progress_ = watch_.seconds() + progress_seconds;
    progress_told_ = true;
    const double seconds = std::max(watch_.seconds(), 1e-9);
    show_progress(fmt::format("{:6.1f}s  {} cases  {:.0f} k cases/s  {:.2f} M events/s  fails {}",
                              seconds, grouped(static_cast<std::int64_t>(cases)),
                              static_cast<double>(cases) / seconds / 1e3,
                              static_cast<double>(events) / seconds / 1e6, n_failures));
  }

  /// What was kept from earlier campaigns runs first.
  std::vector<Failure> run_corpus() {
    std::vector<Failure> failures;
    CaseRunner runner(fault_of(mutant_));
    if (options_->corpus.empty()) return failures;
    const std::string only = protocol();
    for (const Choices& choices : corpus_of(options_->corpus)) {
      if (failures.size() >= options_->max_failures || is_over()) break;
      ChoiceTape tape(choices);
      const GeneratedCase generated = generate_case(tape, {});
      if (!only.empty() && generated.scenario.protocol != only) continue;
      CaseOutcome outcome = runner.run(generated);
      ++report_.corpus_cases;
      corpus_coverage_.observe(generated, outcome, runner.trace());
      if (outcome.alarm.empty()) continue;
      if (mutant_ != nullptr && outcome.alarm != mutant_->caught_by) continue;
      failures.push_back({0, generated.scenario.protocol, choices, std::move(outcome)});
    }
    return failures;
  }

  bool is_over() const { return is_interrupted() || (budget_ && watch_.seconds() >= *budget_); }

  /// Of the campaign's first cases of a cell, those of cells that the corpus did not reach.
  std::vector<Choices> new_cases() const {
    std::vector<Choices> cases;
    const auto is_new = [this](const Coverage::Cell& cell) {
      return corpus_coverage_.cells().count(cell) == 0;
    };
    for (const FirstCase& first : report_.result.corpus) {
      if (std::any_of(first.cells.begin(), first.cells.end(), is_new))
        cases.push_back(first.choices);
    }
    return cases;
  }

  bool is_past_telling() const {
    return is_interrupted() ||
           (budget_ && watch_.seconds() >= *budget_ + shrink_seconds_past_the_budget);
  }

  void tell(const Failure& failure) {
    const ShrinkOptions shrinking{.fault = fault_of(mutant_),
                                  .protocol = protocol(),
                                  .is_over = [this] { return is_past_telling(); }};
    Counterexample found = counterexample_of(failure, shrinking);
    if (!options_->save.empty())
      report_.saved.push_back(save_counterexample(found, options_->save, report_.mutant));
    report_.counterexamples.push_back(std::move(found));
  }

  const FuzzOptions* options_;
  const Mutant* mutant_;
  Stopwatch watch_;
  std::optional<double> budget_;
  FuzzReport report_;
  Coverage corpus_coverage_;
  double next_progress_ = progress_seconds;
  bool progress_told_ = false;
};

/// One case alone: what it is and what becomes of it.
ExitCode run_one(const FuzzOptions& options) {
  const Mutant* mutant = asked_mutant(options.mutant);
  ChoiceTape tape(case_of(options.fuzz_case));
  const GeneratedCase generated = generate_case(tape, {});
  CaseRunner runner(fault_of(mutant));
  const CaseOutcome outcome = runner.run(generated);
  if (!options.trace.empty()) write_trace(runner.trace(), options.trace);
  OutputFile file(options.output);
  const std::string token = case_token(tape.chosen());
  if (options.json) {
    FuzzReport report;
    report.result.cases = 1;
    report.result.events = static_cast<std::uint64_t>(outcome.n_events);
    report.result.coverage.observe(generated, outcome, runner.trace());
    report.result.digest = {outcome.digest, 0};
    if (mutant != nullptr) report.mutant = mutant->name;
    if (!outcome.alarm.empty()) {
      report.counterexamples.push_back(counterexample_of(
          {0, generated.scenario.protocol, tape.chosen(), outcome},
          {.fault = fault_of(mutant), .protocol = {}, .runs_max = 0, .is_over = {}}));
    }
    file.write(fuzz_json(report));
  } else {
    std::string text = program_text(generated.scenario);
    text += fmt::format("{} events; ended {}\n", outcome.n_events,
                        outcome.code.empty() ? "without an error" : "in " + outcome.code);
    text += outcome.alarm.empty()
                ? fmt::format("holds. Again: rematsim fuzz --case {}\n", token)
                : fmt::format("FAIL {}: {}\nSmaller: rematsim shrink {}{}\n", outcome.alarm,
                              outcome.message, token,
                              options.mutant.empty() ? "" : " --mutant " + options.mutant);
    file.write(text);
  }
  file.commit();
  return outcome.alarm.empty() ? ExitCode::fine : ExitCode::found;
}

ExitCode print_digest(const FuzzOptions& options) {
  catch_interrupts();
  check_protocol(options.protocol);
  CampaignOptions campaign;
  campaign.seed = seed_of(options.seed);
  campaign.jobs = jobs_of(options.jobs);
  campaign.protocol = options.protocol;
  campaign.fault = fault_of(asked_mutant(options.mutant));
  campaign.is_over = [](std::uint64_t, std::uint64_t, std::size_t) { return is_interrupted(); };
  OutputFile file(options.output);
  file.write(digest_of(campaign)(options.cases.value_or(0)) + "\n");
  file.commit();
  return is_interrupted() ? ExitCode::interrupted : ExitCode::fine;
}

}  // namespace

ExitCode fuzz_command(const FuzzOptions& options) {
  if (!options.fuzz_case.empty()) return run_one(options);
  if (options.digest) return print_digest(options);
  // Opened first: where nothing can be written, no hour is spent on it.
  OutputFile file(options.output);
  std::optional<OutputFile> junit;
  std::optional<OutputFile> sarif;
  if (!options.junit.empty()) junit.emplace(options.junit);
  if (!options.sarif.empty()) sarif.emplace(options.sarif);
  const FuzzReport report = FuzzRun(options).run();
  if (junit) {
    junit->write(fuzz_junit(report));
    junit->commit();
  }
  if (sarif) {
    sarif->write(fuzz_sarif(report));
    sarif->commit();
  }
  const bool colours = options.output == "-" && output_has_colours();
  file.write(options.json ? fuzz_json(report) : fuzz_text(options, report, colours));
  file.commit();
  if (report.was_interrupted) return ExitCode::interrupted;
  return why_of(report).empty() ? ExitCode::fine : ExitCode::found;
}

}  // namespace remat
