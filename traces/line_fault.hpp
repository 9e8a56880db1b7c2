#pragma once

#include <string>
#include <string_view>

namespace remat {

/// Why a line is not one JSON object, and what was expected: cut off, not UTF-8, not JSON, …
/// `reason` is the parser's own, `near` the JSON pointer of the field that it read last, or empty.
std::string line_fault(std::string_view line, std::string_view reason, std::string_view near);

}  // namespace remat
