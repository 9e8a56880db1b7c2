#include "tests/schedules/shared_schedules.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace fs = std::filesystem;

namespace remat {
namespace {

/// Cells of a line; one in double quotes may hold commas.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ',' && !is_quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

std::optional<std::string> shared_schedules() {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path folder =
      fs::path(given != nullptr ? given : REMATSIM_SHARED_DEFAULT) / "data" / "schedules";
  if (fs::is_directory(folder)) return folder.string() + "/";
  WARN("no " << folder.string() << ": what others measured is not compared with");
  return std::nullopt;
}

std::vector<std::string> csv_files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::map<std::string, std::string>> csv_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> heading = cells_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(heading.size(), cells.size()); ++i)
      row[heading[i]] = cells[i];
  }
  return rows;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

PipelineLists compute_of(const PipelineLists& lists) {
  PipelineLists compute;
  for (const RankList& list : lists.ranks) {
    RankList& kept = compute.ranks.emplace_back();
    std::copy_if(list.begin(), list.end(), std::back_inserter(kept),
                 [](const PipelineAction& action) { return is_compute(action.work); });
  }
  return compute;
}

TableName table_name(const std::string& file) {
  static const std::regex form(R"((.*)_P(\d+)_M(\d+)(?:_V(\d+))?(.*)\.csv)");
  std::smatch parts;
  REQUIRE(std::regex_match(file, parts, form));
  return {parts[1], std::stoi(parts[2]), std::stoi(parts[3]),
          parts[4].matched ? std::stoi(parts[4]) : 1, parts[5]};
}

}  // namespace remat
