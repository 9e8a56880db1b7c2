#pragma once

#include <string>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// Reads lists as CSV (a line for each rank, a token in each cell, empty cells are idle) or as JSON
/// ({"ranks": [["F0.0", …], …]}, other keys left alone; or the list of lists itself). `file` is
/// what messages call it. Throws InputError with the line where something is no token, where a rank
/// has no actions, or where numbers are far larger than lists of this length can have.
PipelineLists read_pipeline_lists(const std::string& file, const std::string& text);

/// As CSV in the way of the tables, one line for each rank.
std::string lists_csv(const PipelineLists& lists);

}  // namespace remat
