#pragma once

#include <optional>
#include <string>

#include "traces/trace.hpp"

namespace remat {

/// Where two traces first differ in what they say, looked at field by field and without the writer;
/// none where they are equal. The order of the fields of an event says nothing.
std::optional<std::string> first_difference(const Trace& a, const Trace& b);

}  // namespace remat
