#pragma once

#include <string>

#include "traces/trace.hpp"

namespace remat {

/// Appends `event` as one line of JSON: seq first, then the fields in the order of `Field`, unknown
/// ones last, without white space. What is written reads back equal, and what was written is
/// written again byte for byte.
void append_json(const EventView& event, std::string& to);

/// The whole trace as JSON Lines.
std::string json_lines(const Trace& trace);

/// Writes the trace to `path`, gzipped where the name ends in `.gz` (without a time stamp, so equal
/// traces give equal bytes). Written under a temporary name beside it, then renamed: nothing
/// half-written stays. Throws InputError.
void write_trace(const Trace& trace, const std::string& path);

}  // namespace remat
