#include "properties/case_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "model/flat_map.hpp"
#include "properties/expectation.hpp"

namespace remat {
namespace {

constexpr std::uint64_t cases_of_one_table = 1024;

}  // namespace

CaseOutcome CaseRunner::run(const GeneratedCase& generated) {
  try {
    return judged(generated);
  } catch (const std::exception& error) {
    // A fault of our own is a finding like any other, to be shrunk and told.
    CaseOutcome outcome;
    outcome.alarm = "internal_error";
    outcome.message = error.what();
    outcome.n_events = std::ssize(trace_);
    return outcome;
  }
}

CaseOutcome CaseRunner::judged(const GeneratedCase& generated) {
  CaseOutcome outcome;
  Simulation simulation = simulation_of(generated.scenario);
  simulation.options.fault = fault_.protocol;
  simulation.rank.fault = fault_.rank;
  simulation.expectation = expectation_of(generated.scenario, ReplayedEffects::repeat);
  if (generated.edit != Edit::none) {
    // How far a run comes before its error is not foretold; its bytes stay within the bound.
    simulation.expectation.op_counts.clear();
    simulation.expectation.resident_bytes.reset();
  }
  // Names and layouts stay when events go: now and then they are given up too.
  if (++n_cases_ % cases_of_one_table == 0) trace_ = Trace();
  trace_.drop_events();
  result_ = simulate(simulation, trace_);
  Checker checker(invariants_);
  for (std::size_t i = 0; i < trace_.size(); ++i)
    checker.observe(trace_[i]);
  const Verdict verdict = checker.finish();
  outcome.n_events = std::ssize(trace_);
  if (result_.error) outcome.code = result_.error->code;
  judge(generated, verdict, outcome);
  outcome.digest = digest();
  return outcome;
}

void CaseRunner::judge(const GeneratedCase& generated, const Verdict& verdict,
                       CaseOutcome& outcome) const {
  const std::string_view expected_code = generated.expected_code();
  const bool ends_as_expected = outcome.code == expected_code;
  const std::int64_t expected_from =
      ends_as_expected && result_.error ? first_expected_seq() : INT64_MAX;
  for (const Finding& finding : verdict.findings) {
    outcome.invariants.push_back(finding.invariant);
    const bool is_expected =
        finding.seq >= expected_from && row_of(generated.edit).excuses_finding(finding.invariant);
    const bool is_meant = finding.invariant == fault_.meant && outcome.alarm != fault_.meant;
    if (is_expected || (!outcome.alarm.empty() && !is_meant)) continue;
    outcome.alarm = finding.invariant;
    outcome.message = finding.message;
    outcome.events = finding.events;
  }
  const std::string ended = "error:" + (outcome.code.empty() ? std::string("none") : outcome.code);
  if (!outcome.alarm.empty() && (ends_as_expected || ended != fault_.meant)) return;
  if (!ends_as_expected) {
    outcome.alarm = ended;
    outcome.message = result_.error ? result_.error->message
                                    : fmt::format("the edit '{}' was to end in {}",
                                                  row_of(generated.edit).name, expected_code);
    if (result_.error) outcome.events = {result_.error_seq};
  } else if (result_.gradients_match == false) {
    outcome.alarm = "gradients_equal_plain";
    outcome.message = "the gradients are not those of the run without checkpointing";
  }
}

/// Where the request begins that ended in the error: the outermost slot that was asked for and not
/// handed out; where none was, the read of a placeholder that was refused, or the error itself.
std::int64_t CaseRunner::first_expected_seq() const {
  std::vector<std::int64_t> open;
  std::int64_t refused = result_.error_seq;
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const EventView event = trace_[i];
    if (event.kind() == Kind::unpack_begin) open.push_back(event.seq());
    if (event.kind() == Kind::placeholder_read) refused = event.seq();
    if (event.kind() == Kind::unpack && !open.empty()) open.pop_back();
  }
  return open.empty() ? refused : open.front();
}

std::uint64_t CaseRunner::digest() const {
  std::uint64_t lane = 0x243f6a8885a308d3ULL;
  const auto mix = [&](std::uint64_t word) {
    lane = mixed_bits((lane ^ word) * 0x9e3779b97f4a7c15ULL);
  };
  for (std::size_t i = 0; i < trace_.size(); ++i)
    lane = lane * 0x100000001b3ULL + static_cast<std::uint64_t>(trace_[i].kind());
  mix(trace_.size());
  mix(static_cast<std::uint64_t>(result_.end.ns));
  mix(static_cast<std::uint64_t>(result_.at_peak.total));
  mix(static_cast<std::uint64_t>(result_.hook_calls));
  for (const Contribution& contribution : result_.contributions) {
    mix(contribution.leaf.index());
    mix(contribution.value.value());
  }
  return lane;
}

}  // namespace remat
