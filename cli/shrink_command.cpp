#include "cli/shrink_command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/asked_mutant.hpp"
#include "cli/campaign_words.hpp"
#include "cli/console.hpp"
#include "cli/counterexample_output.hpp"
#include "cli/interrupt.hpp"
#include "properties/case_token.hpp"
#include "traces/output_file.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

ExitCode shrink_command(const ShrinkCommandOptions& options) {
  catch_interrupts();
  const Mutant* mutant = asked_mutant(options.mutant);
  const std::string mutant_name = mutant == nullptr ? "" : std::string(mutant->name);
  const PlantedFault fault = fault_of(mutant);
  ChoiceTape tape(case_of(options.fuzz_case));
  const GeneratedCase generated = generate_case(tape, {});
  CaseRunner runner(fault);
  const CaseOutcome outcome = runner.run(generated);
  OutputFile file(options.output);
  if (outcome.alarm.empty()) {
    const std::string token = case_token(tape.chosen());
    file.write(options.json
                   ? Json({{"version", 1}, {"violation", nullptr}, {"case", token}}).dump(2) + "\n"
                   : fmt::format("the case holds: there is nothing to shrink. Again: rematsim fuzz "
                                 "--case {}\n",
                                 token));
    file.commit();
    return ExitCode::fine;
  }
  const Counterexample found = counterexample_of(
      {0, generated.scenario.protocol, tape.chosen(), outcome},
      {.fault = fault, .protocol = {}, .is_over = [] { return is_interrupted(); }});
  std::string text =
      counterexample_text(found, mutant_name, options.output == "-" && output_has_colours());
  if (!options.save.empty()) {
    text += fmt::format("  saved: {0}.scenario.json, {0}.jsonl\n",
                        save_counterexample(found, options.save, mutant_name));
  }
  if (options.json) {
    Json violation = counterexample_json(found, mutant_name);
    violation["runs"] = found.shrunk.n_runs;
    text = Json({{"version", 1}, {"violation", violation}}).dump(2) + "\n";
  }
  file.write(text);
  file.commit();
  return is_interrupted() ? ExitCode::interrupted : ExitCode::found;
}

}  // namespace remat
