#include "properties/counterexample.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "properties/case_token.hpp"
#include "properties/program_text.hpp"
#include "sim/scenario_writer.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

std::size_t n_regions(const GeneratedCase& generated) {
  const std::vector<Statement>& statements = generated.scenario.program.forwards.front().statements;
  return static_cast<std::size_t>(std::count_if(
      statements.begin(), statements.end(),
      [](const Statement& statement) { return std::holds_alternative<RegionBegin>(statement); }));
}

/// Events by their numbers; with none named, the last one.
std::vector<std::string> lines_of(const Trace& trace, const std::vector<std::int64_t>& seqs) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const bool is_named = std::find(seqs.begin(), seqs.end(), trace[i].seq()) != seqs.end();
    if (!is_named && !(seqs.empty() && i + 1 == trace.size())) continue;
    append_json(trace[i], lines.emplace_back());
    while (!lines.back().empty() && lines.back().back() == '\n')
      lines.back().pop_back();
  }
  return lines;
}

}  // namespace

Counterexample counterexample_of(const Failure& failure, const ShrinkOptions& options) {
  Counterexample made;
  made.number = failure.number;
  // A failure is shrunk within the protocol that it was found under.
  ShrinkOptions within = options;
  within.protocol = failure.protocol;
  ChoiceTape found(failure.choices);
  made.n_regions_before = n_regions(generate_case(found, {.protocol = within.protocol}));
  made.n_choices_before =
      static_cast<std::size_t>(std::count_if(failure.choices.begin(), failure.choices.end(),
                                             [](std::uint64_t choice) { return choice != 0; }));
  made.shrunk = shrink(failure.choices, failure.outcome.alarm, within);
  made.token = case_token(made.shrunk.choices);
  ChoiceTape tape(made.shrunk.choices);
  const GeneratedCase generated = generate_case(tape, {.protocol = within.protocol});
  made.protocol = generated.scenario.protocol;
  CaseRunner runner(options.fault);
  made.outcome = runner.run(generated);
  REMAT_INVARIANT(made.outcome.alarm == failure.outcome.alarm);
  made.program = program_text(generated.scenario);
  made.scenario = scenario_json(
      generated.scenario,
      {.about = "the smallest case found for " + made.outcome.alarm, .fuzz_case = made.token});
  made.events = lines_of(runner.trace(), made.outcome.events);
  made.trace = runner.take_trace();
  return made;
}

}  // namespace remat
