#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/invariants/checker.hpp"
#include "properties/program_generator.hpp"
#include "sim/simulation.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What one case came to.
struct CaseOutcome {
  /// Why the case is an alarm: an invariant's name, or `error:CODE`; empty where all is well.
  std::string alarm;
  std::string message;
  std::vector<std::int64_t> events;  // that prove it
  std::string code;                  // the error that the run ended in; empty: none
  std::int64_t n_events = 0;
};

/// Simulates the case and holds its trace against every invariant and the plain run. A case with a
/// negative edit must end in that edit's code, and what invariants say there is expected.
CaseOutcome run_case(const GeneratedCase& generated, Trace& trace);

}  // namespace remat
