#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "properties/invariants/checker.hpp"
#include "traces/finding.hpp"
#include "traces/trace.hpp"

namespace remat {

using Findings = std::vector<Finding>;
inline const Findings no_findings;  // compared with, so that a failure prints what there is

/// A trace written by hand, read by the real reader: JSON Lines that need no `seq` and no header.
/// The n-th event is event n, a header that says no more than the format goes before the first
/// unless that is a header (event 0); blank lines and lines that begin with `//` count for nothing.
/// Throws InputError as the reader does; it names the file `t`.
Trace hand_made(std::string_view json_lines);

/// The verdict on `hand_made(json_lines)`. With REMATSIM_SABOTAGE=NAME in the environment every
/// invariant runs but that one: tests/sabotage sees which tests notice. The trace is also read
/// event by event, each dropped before the next comes; throws std::logic_error where that gives
/// another verdict.
Verdict checked(std::string_view json_lines);

/// What the verdict says an invariant needed and did not find in the trace, joined by "; "; empty
/// where all of it was checked.
std::string needs(const Verdict& verdict, std::string_view invariant);

std::ostream& operator<<(std::ostream& out, const Finding& finding);
std::ostream& operator<<(std::ostream& out, const NotChecked& unchecked);

}  // namespace remat
