#include "properties/case_runner.hpp"

#include <fmt/format.h>

namespace remat {
namespace {

void judge_error(const GeneratedCase& generated, const SimulationResult& result,
                 CaseOutcome& outcome) {
  if (result.error) outcome.code = result.error->code;
  if (outcome.code == generated.edit.code) return;
  outcome.alarm = "error:" + (outcome.code.empty() ? std::string("none") : outcome.code);
  outcome.message = result.error ? result.error->message
                                 : fmt::format("the edit '{}' was to end in {}",
                                               generated.edit.name, generated.edit.code);
  if (result.error) outcome.events = {result.error_seq};
}

}  // namespace

CaseOutcome run_case(const GeneratedCase& generated, Trace& trace) {
  CaseOutcome outcome;
  trace.drop_events();
  const SimulationResult result = simulate(simulation_of(generated.scenario), trace);
  Checker checker;
  for (std::size_t i = 0; i < trace.size(); ++i)
    checker.observe(trace[i]);
  const Verdict verdict = checker.finish();
  outcome.n_events = std::ssize(trace);
  // An edit makes the run wrong on purpose: what the invariants say then is expected.
  if (generated.edit.code.empty() && !verdict.findings.empty()) {
    const Finding& first = verdict.findings.front();
    outcome.alarm = first.invariant;
    outcome.message = first.message;
    outcome.events = first.events;
    if (result.error) outcome.code = result.error->code;
    return outcome;
  }
  judge_error(generated, result, outcome);
  if (outcome.alarm.empty() && generated.edit.code.empty() && result.gradients_match == false) {
    outcome.alarm = "gradients_equal_plain";
    outcome.message = "the gradients are not those of the run without checkpointing";
  }
  return outcome;
}

}  // namespace remat
