#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// The folder of pipeline schedules that others made, with a slash behind it: that of
/// $REMATSIM_SHARED (../shared where that is not set). Where there is none, a line says so.
std::optional<std::string> shared_schedules();

/// The names of the CSV files of a folder, sorted.
std::vector<std::string> csv_files_in(const std::string& folder);

/// The rows of a CSV file with a heading, by its columns' names.
std::vector<std::map<std::string, std::string>> csv_rows(const std::string& path);

/// What stands in a file.
std::string text_of(const std::string& path);

/// The lists without what takes no time: messages and collectives.
PipelineLists compute_of(const PipelineLists& lists);

/// P, M and V out of "1F1B_P4_M8_V1", and what stands before them and behind.
struct TableName {
  std::string schedule;
  int ranks = 0;
  int microbatches = 0;
  int chunks = 1;
  std::string rest;
};
TableName table_name(const std::string& file);

}  // namespace remat
