#include "cli/selfcheck_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/asked_mutant.hpp"
#include "cli/campaign_words.hpp"
#include "cli/child_program.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "model/errors.hpp"
#include "properties/campaign.hpp"
#include "properties/case_token.hpp"
#include "properties/selfcheck.hpp"
#include "traces/diff.hpp"
#include "traces/output_file.hpp"
#include "traces/reader.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string> lines_of(const Trace& trace) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    append_json(trace[i], lines.emplace_back());
    lines.back().pop_back();  // the line's end
  }
  return lines;
}

/// Two ways of running the same cases.
struct Comparison {
  std::string name;
  std::string digest;
  std::optional<std::uint64_t> first_differing;
  std::string first_event;  // that differs
};

class Selfcheck {
 public:
  explicit Selfcheck(const SelfcheckOptions& options)
      : options_(&options), mutant_(asked_mutant(options.mutant)) {}

  std::vector<Comparison> run() {
    const DigestOf here = [this](std::uint64_t cases) { return digest_here(cases, 1); };
    std::vector<Comparison> comparisons;
    comparisons.push_back(compared("again in this process", here, here, false));
    for (const unsigned jobs : {2U, 3U}) {
      const DigestOf parallel = [this, jobs](std::uint64_t cases) {
        return digest_here(cases, jobs);
      };
      comparisons.push_back(compared(fmt::format("{} jobs", jobs), here, parallel, false));
    }
    const DigestOf there = [this](std::uint64_t cases) { return digest_there(cases); };
    if (!is_interrupted())
      comparisons.push_back(compared("another process, 2 jobs", here, there, true));
    return comparisons;
  }

 private:
  std::uint64_t seed() const { return seed_of(options_->seed); }
  PlantedFault fault() const { return mutant_ == nullptr ? PlantedFault{} : mutant_->fault; }

  std::string digest_here(std::uint64_t cases, unsigned jobs) const {
    CampaignOptions campaign;
    campaign.seed = seed();
    campaign.cases_max = cases;
    campaign.jobs = jobs;
    campaign.fault = fault();
    campaign.failures_max = UINT64_MAX;
    campaign.is_over = [](std::uint64_t, std::uint64_t, std::size_t) { return is_interrupted(); };
    return shown_digest(run_campaign(campaign).digest);
  }

  std::vector<std::string> with_mutant(std::vector<std::string> words) const {
    if (mutant_ != nullptr) words.insert(words.end(), {"--mutant", options_->mutant});
    return words;
  }

  std::string digest_there(std::uint64_t cases) const {
    std::string digest =
        output_of_this_program(with_mutant({"fuzz", "--digest", "--seed", std::to_string(seed()),
                                            "--cases", std::to_string(cases), "--jobs", "2"}));
    while (!digest.empty() && digest.back() == '\n')
      digest.pop_back();
    return digest;
  }

  Comparison compared(std::string name, const DigestOf& one, const DigestOf& other,
                      bool in_another_process) {
    Comparison comparison{std::move(name), other(options_->cases), std::nullopt, {}};
    comparison.first_differing = first_differing_case(one, other, options_->cases);
    if (comparison.first_differing) {
      comparison.digest.clear();
      comparison.first_event = difference_in(*comparison.first_differing, in_another_process);
    }
    return comparison;
  }

  Trace trace_here(std::uint64_t number) const {
    ChoiceTape tape = tape_of_case(seed(), number);
    CaseRunner runner(fault());
    runner.run(generate_case(tape, {}));
    return runner.take_trace();
  }

  Trace trace_there(std::uint64_t number) const {
    ChoiceTape tape = tape_of_case(seed(), number);
    generate_case(tape, {});
    std::string folder = (fs::temp_directory_path() / "rematsim-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw InputError(folder + ": cannot be made");
    const std::string path = folder + "/other.jsonl";
    output_of_this_program(
        with_mutant({"fuzz", "--case", case_token(tape.chosen()), "--trace", path}));
    Trace trace = read_trace(path);
    fs::remove_all(folder);
    return trace;
  }

  std::string difference_in(std::uint64_t number, bool in_another_process) const {
    const Trace one = trace_here(number);
    const Trace other = in_another_process ? trace_there(number) : trace_here(number);
    const auto difference = first_difference(lines_of(one), lines_of(other));
    if (!difference) return "no event: the two agree this time";
    return fmt::format("event {}: {}, or {}", difference->index,
                       difference->predicted.value_or("no such event"),
                       difference->recorded.value_or("no such event"));
  }

  const SelfcheckOptions* options_;
  const Mutant* mutant_;
};

}  // namespace

ExitCode selfcheck_command(const SelfcheckOptions& options) {
  catch_interrupts();
  OutputFile file(options.output);
  std::vector<Comparison> comparisons = Selfcheck(options).run();
  if (is_interrupted()) comparisons.clear();  // of runs that were cut short: they prove nothing
  bool agrees = true;
  Json json = {{"version", 1}, {"seed", seed_of(options.seed)}, {"cases", options.cases}};
  json["comparisons"] = Json::array();
  std::string text;
  for (const Comparison& comparison : comparisons) {
    const auto& differing = comparison.first_differing;
    agrees &= !differing;
    json["comparisons"].push_back({{"name", comparison.name},
                                   {"agrees", !differing},
                                   {"digest", differing ? Json(nullptr) : Json(comparison.digest)},
                                   {"first_case", differing ? Json(*differing) : Json(nullptr)},
                                   {"first_event", comparison.first_event}});
    text += differing ? fmt::format("DIFFERS  {}: case {}: {}\n", comparison.name, *differing,
                                    comparison.first_event)
                      : fmt::format("same     {}: {}\n", comparison.name, comparison.digest);
  }
  json["agrees"] = is_interrupted() ? Json(nullptr) : Json(agrees);
  json["interrupted"] = is_interrupted();
  json["why"] = agrees ? Json(nullptr) : Json("two runs that must agree did not");
  text += fmt::format("{} cases of seed {}: {}\n", options.cases, options.seed,
                      is_interrupted() ? "interrupted: nothing is proved"
                      : agrees         ? "every run came to the same"
                                       : "runs differ");
  file.write(options.json ? json.dump(2) + "\n" : text);
  file.commit();
  if (is_interrupted()) return ExitCode::interrupted;
  return agrees ? ExitCode::fine : ExitCode::found;
}

}  // namespace remat
