#pragma once

#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace remat {

/// A header line and behind it `lines`, each of which ends in a line end.
std::string with_header(std::string_view lines);

/// The trace that `bytes` are, plain or gzip. Its name in messages is `t`.
Trace trace_in(std::string_view bytes);

/// What the reader says about `bytes`; empty where it takes them.
std::string fault_in(std::string_view bytes);

/// `bytes` as one gzip member.
std::string gzipped(std::string_view bytes);

}  // namespace remat
