#include "cli/mutants_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/asked_mutant.hpp"
#include "cli/campaign_words.hpp"
#include "cli/console.hpp"
#include "cli/counterexample_output.hpp"
#include "cli/interrupt.hpp"
#include "cli/stopwatch.hpp"
#include "properties/mutant_run.hpp"
#include "properties/selfcheck.hpp"
#include "traces/output_file.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t matrix_seeds = 30;
constexpr std::uint64_t selfcheck_cases = 200;

/// What became of one mutant.
struct Row {
  const Mutant* mutant = nullptr;
  MutantRun run;
  bool is_caught = false;
  bool was_run = false;  // to its end: until it was caught, or had all its cases
  double seconds = 0;
  std::vector<std::uint64_t> cases_by_seed;  // of the matrix; only where it was caught
};

/// A fault of determinism shows where the same cases run twice.
bool differs_from_itself(const Mutant& mutant, std::uint64_t seed) {
  CampaignOptions options;
  options.seed = seed;
  options.fault = mutant.fault;
  const DigestOf digest = digest_of(options);
  return first_differing_case(digest, digest, selfcheck_cases).has_value();
}

class MutantsRun {
 public:
  explicit MutantsRun(const MutantsOptions& options)
      : options_(&options), budget_(seconds_of(options.budget)) {}

  std::vector<Row> run() {
    std::vector<const Mutant*> asked;
    for (const std::string& name : options_->names)
      asked.push_back(asked_mutant(name));
    if (asked.empty()) {
      for (const Mutant& mutant : mutants())
        asked.push_back(&mutant);
    }
    std::vector<Row> rows;
    for (const Mutant* mutant : asked) {
      if (is_over()) {
        Row& row = rows.emplace_back();
        row.mutant = mutant;
        continue;  // not run
      }
      rows.push_back(run_one(*mutant));
      rows.back().was_run = rows.back().is_caught || !is_over();
    }
    return rows;
  }

 private:
  bool is_over() const { return is_interrupted() || watch_.seconds() >= budget_; }

  Row run_one(const Mutant& mutant) const {
    Row row;
    row.mutant = &mutant;
    const Stopwatch watch;
    const std::uint64_t seed = seed_of(options_->seed);
    if (mutant.caught_by == "selfcheck") {
      row.is_caught = differs_from_itself(mutant, seed);
      row.run.cases = selfcheck_cases;
      row.seconds = watch.seconds();
      return row;
    }
    MutantRunOptions running{.seed = seed,
                             .cases_max = options_->cases,
                             .jobs = jobs_of(options_->jobs),
                             .shrinks = true,
                             .is_over = [this] { return is_over(); }};
    row.run = run_mutant(mutant, running);
    row.is_caught = row.run.caught.has_value();
    row.seconds = watch.seconds();
    running.shrinks = false;
    for (std::uint64_t i = 0; options_->matrix && i < matrix_seeds && !is_over(); ++i) {
      running.seed = seed + 1 + i;
      const MutantRun again = run_mutant(mutant, running);
      if (again.caught) row.cases_by_seed.push_back(again.cases);
    }
    std::sort(row.cases_by_seed.begin(), row.cases_by_seed.end());
    return row;
  }

  const MutantsOptions* options_;
  double budget_;
  Stopwatch watch_;
};

std::size_t n_caught(const std::vector<Row>& rows) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.is_caught; }));
}

Json row_json(const Row& row) {
  Json json = {{"name", row.mutant->name},
               {"protocol", row.mutant->protocol.empty() ? "all" : row.mutant->protocol},
               {"invariant", row.mutant->caught_by},
               {"caught", row.is_caught},
               {"caught_by", row.run.caught  ? Json(row.run.caught->outcome.alarm)
                             : row.is_caught ? Json(row.mutant->caught_by)
                                             : Json(nullptr)},
               {"was_run", row.was_run},
               {"cases", row.run.cases},
               {"change", row.mutant->change},
               {"seconds", row.seconds}};
  json["counterexample_events"] = nullptr;
  if (row.run.caught) {
    const Counterexample& found = *row.run.caught;
    json["counterexample_events"] = found.outcome.n_events;
    json["case"] = found.token;
    json["regions"] = found.shrunk.n_regions;
    json["choices"] = found.shrunk.n_choices;
    json["shrink_runs"] = found.shrunk.n_runs;
    json["message"] = found.outcome.message;
    json["program"] = found.program;
  }
  if (!row.cases_by_seed.empty()) {
    const std::vector<std::uint64_t>& cases = row.cases_by_seed;
    json["matrix"] = {{"seeds", matrix_seeds},
                      {"caught", cases.size()},
                      {"cases_min", cases.front()},
                      {"cases_median", cases[cases.size() / 2]},
                      {"cases_max", cases.back()}};
  }
  return json;
}

std::string row_text(const Row& row, bool colours) {
  std::string text = fmt::format("{} {:<36} {:<23} {:>8} cases",
                                 painted(row.is_caught ? "caught"
                                         : row.was_run ? "MISSED"
                                                       : "no time",
                                         row.is_caught ? Colour::green : Colour::red, colours),
                                 row.mutant->name, row.mutant->caught_by,
                                 grouped(static_cast<std::int64_t>(row.run.cases)));
  if (row.run.caught) {
    text += fmt::format("  {} regions, {} choices, {} events, shrunk in {} runs",
                        row.run.caught->shrunk.n_regions, row.run.caught->shrunk.n_choices,
                        row.run.caught->outcome.n_events, row.run.caught->shrunk.n_runs);
  }
  text += fmt::format("  {:.2f} s\n", row.seconds);
  if (!row.cases_by_seed.empty()) {
    const std::vector<std::uint64_t>& cases = row.cases_by_seed;
    text +=
        fmt::format("       over {} seeds: caught {}, cases {} to {}, median {}\n", matrix_seeds,
                    cases.size(), cases.front(), cases.back(), cases[cases.size() / 2]);
  }
  if (row.run.caught) {
    text += fmt::format("       {}\n       {}\n", row.run.caught->outcome.message,
                        again_command(*row.run.caught, std::string(row.mutant->name)));
  }
  return text;
}

}  // namespace

ExitCode mutants_command(const MutantsOptions& options) {
  catch_interrupts();
  OutputFile file(options.output);
  const std::vector<Row> rows = MutantsRun(options).run();
  if (!options.save.empty()) {
    for (const Row& row : rows) {
      if (row.run.caught)
        save_counterexample(*row.run.caught, options.save, std::string(row.mutant->name));
    }
  }
  const std::size_t caught = n_caught(rows);
  const std::size_t missed = rows.size() - caught;
  const bool all_run =
      std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.was_run; });
  if (options.json) {
    Json json = {
        {"version", 1}, {"mutants", Json::array()}, {"caught", caught}, {"missed", missed}};
    for (const Row& row : rows)
      json["mutants"].push_back(row_json(row));
    json["seed"] = seed_of(options.seed);
    json["interrupted"] = is_interrupted();
    json["why"] = missed == 0 ? Json(nullptr)
                  : all_run   ? Json("a mutant survived")
                              : Json("there was no time for all of them");
    file.write(json.dump(2) + "\n");
  } else {
    const bool colours = options.output == "-" && output_has_colours();
    for (const Row& row : rows)
      file.write(row_text(row, colours));
    file.write(fmt::format("{} of {} mutants caught by the invariant that is meant{}.\n", caught,
                           rows.size(),
                           is_interrupted() ? "; interrupted"
                           : all_run        ? ""
                                            : "; there was no time for all of them"));
  }
  file.commit();
  if (is_interrupted()) return ExitCode::interrupted;
  return missed == 0 ? ExitCode::fine : ExitCode::found;
}

}  // namespace remat
