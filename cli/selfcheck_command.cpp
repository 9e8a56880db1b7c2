#include "cli/selfcheck_command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/asked_mutant.hpp"
#include "cli/campaign_words.hpp"
#include "cli/child_program.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "model/errors.hpp"
#include "model/text_lines.hpp"
#include "properties/campaign.hpp"
#include "properties/case_token.hpp"
#include "properties/selfcheck.hpp"
#include "traces/diff.hpp"
#include "traces/output_file.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

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
    const DigestOf here = digest_here(1);
    std::vector<Comparison> comparisons;
    const auto compare = [&](const std::string& name, const DigestOf& other, bool is_elsewhere) {
      if (is_interrupted()) return;
      Comparison& comparison = comparisons.emplace_back();
      comparison.name = name;
      // Anew for each: a fault that lives as long as the process shows only in its later runs.
      comparison.digest = here(options_->cases);
      if (other(options_->cases) == comparison.digest) return;
      // Runs that do not even agree with themselves may agree when they are compared again.
      const std::uint64_t differing =
          first_differing_case(here, other, options_->cases).value_or(0);
      comparison.first_differing = differing;
      comparison.first_event = difference_in(differing, is_elsewhere);
    };
    compare("again in this process", here, false);
    compare("2 jobs", digest_here(2), false);
    compare("3 jobs", digest_here(3), false);
    compare(
        "another process, 2 jobs", [this](std::uint64_t cases) { return digest_there(cases); },
        true);
    return comparisons;
  }

 private:
  std::uint64_t seed() const { return seed_of(options_->seed); }

  DigestOf digest_here(unsigned jobs) const {
    CampaignOptions campaign;
    campaign.seed = seed();
    campaign.jobs = jobs;
    campaign.fault = fault_of(mutant_);
    campaign.is_over = [](std::uint64_t, std::uint64_t, std::size_t) { return is_interrupted(); };
    return digest_of(campaign);
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

  /// The case's trace, as it is written.
  std::string trace_here(std::uint64_t number) const {
    ChoiceTape tape = tape_of_case(seed(), number);
    CaseRunner runner(fault_of(mutant_));
    runner.run(generate_case(tape, {}));
    return json_lines(runner.trace());
  }

  std::string trace_there(std::uint64_t number) const {
    ChoiceTape tape = tape_of_case(seed(), number);
    generate_case(tape, {});
    return output_of_this_program(with_mutant(
        {"fuzz", "--case", case_token(tape.chosen()), "--trace", "-", "--output", "/dev/null"}));
  }

  std::string difference_in(std::uint64_t number, bool in_another_process) const {
    const std::string one = trace_here(number);
    const std::string other = in_another_process ? trace_there(number) : trace_here(number);
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
