#pragma once

#include <string>

namespace remat {

/// The JSON Schema (draft 2020-12) of one line of a trace, made from the vocabulary: it takes what
/// the reader takes of a line by itself. What only the lines before can tell, such as `seq` that
/// increases or an id that was described, is no part of it.
std::string trace_json_schema();

}  // namespace remat
