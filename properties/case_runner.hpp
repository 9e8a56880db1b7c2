#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/invariants/checker.hpp"
#include "properties/program_generator.hpp"
#include "schedules/protocol_fault.hpp"
#include "sim/rank_fault.hpp"
#include "sim/simulation.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A fault that other rooms offer, switched on.
struct PlantedFault {
  ProtocolFault protocol = ProtocolFault::none;
  RankFault rank = RankFault::none;
  /// The alarm that is meant: where a case is several, the one that is told.
  std::string_view meant = {};
};

/// What one case came to.
struct CaseOutcome {
  /// Why the case is an alarm: an invariant's name, or `error:CODE`; empty where all is well.
  std::string alarm;
  std::string message;
  std::vector<std::int64_t> events;     // that prove it
  std::string code;                     // the error that the run ended in; empty: none
  std::vector<std::string> invariants;  // that found something, expected or not
  std::int64_t n_events = 0;
  /// Tells outcomes apart: of the kinds of events, the times, the gradients and the bytes.
  std::uint64_t digest = 0;
};

/// Simulates cases and holds their traces against every invariant and the plain run. A case with a
/// negative edit must end in that edit's code, and what invariants say of the event where it does
/// is expected. Not for several threads at once; each takes one of its own.
class CaseRunner {
 public:
  explicit CaseRunner(PlantedFault fault = {}, std::vector<std::string> invariants = {})
      : fault_(fault), invariants_(std::move(invariants)) {}

  CaseOutcome run(const GeneratedCase& generated);
  /// Of the last case.
  const Trace& trace() const { return trace_; }
  Trace take_trace() { return std::move(trace_); }
  /// The result of the last case.
  const SimulationResult& result() const { return result_; }

 private:
  CaseOutcome judged(const GeneratedCase& generated);
  void judge(const GeneratedCase& generated, const Verdict& verdict, CaseOutcome& outcome) const;
  std::int64_t first_expected_seq() const;
  std::uint64_t digest() const;

  PlantedFault fault_;
  std::vector<std::string> invariants_;
  std::uint64_t n_cases_ = 0;
  Trace trace_;
  SimulationResult result_;
};

}  // namespace remat
