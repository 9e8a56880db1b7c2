#include "schedules/pipeline_lists_text.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "model/errors.hpp"
#include "model/json_place.hpp"
#include "model/text_lines.hpp"
#include "schedules/action_token.hpp"

namespace remat {
namespace {

constexpr const char* what_is_expected =
    "expected one like 0F1, 0B1, 0I1, 0W1, 0R1, 0SEND_F1, (0F3;3B1)OVERLAP_F_B, F0.1 or DX0.1";
/// How much of a bad token a message repeats.
constexpr std::size_t shown_max = 60;

std::string shown(std::string_view token) {
  std::string text = "'";
  for (const char c : token.substr(0, shown_max))
    text += c >= ' ' && c != 0x7F ? c : '?';
  return text + (token.size() > shown_max ? "…'" : "'");
}

std::string_view trimmed(std::string_view cell) {
  const char* blanks = " \t\r";
  const std::size_t begin = cell.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(blanks) - begin + 1);
}

/// Appends the token's actions; false where it is none.
bool append(std::string_view token, RankList& list) {
  const auto group = read_token(token);
  if (group) list.insert(list.end(), group->begin(), group->end());
  return group.has_value();
}

RankList read_line(const std::string& place, std::string_view line) {
  RankList list;
  std::size_t cell = 0;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    const std::string_view token = trimmed(line.substr(begin, end - begin));
    ++cell;
    if (!token.empty() && !append(token, list)) {
      throw InputError(place + ": " + shown(token) + " in cell " + std::to_string(cell) +
                       " is no action; " + what_is_expected);
    }
    begin = end + 1;
  }
  if (list.empty()) throw InputError(place + ": a rank without actions; expected some");
  return list;
}

PipelineLists read_csv(const std::string& file, const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  while (!lines.empty() && trimmed(lines.back()).empty())
    lines.pop_back();
  PipelineLists lists;
  for (const std::string& line : lines) {
    const std::string place = file + ":" + std::to_string(lists.ranks.size() + 1);
    lists.ranks.push_back(read_line(place, line));
  }
  if (lists.ranks.empty()) throw InputError(file + ": the file is empty; expected a list a rank");
  return lists;
}

PipelineLists read_json(const std::string& file, const std::string& text) {
  const JsonDocument document(file, text);
  const JsonPlace root(document);
  const JsonPlace ranks = root.is_array() ? root : root.at("ranks");
  PipelineLists lists;
  for (const JsonPlace& rank : ranks.items()) {
    RankList& list = lists.ranks.emplace_back();
    for (const JsonPlace& token : rank.items()) {
      if (!append(token.text(), list))
        token.fail(shown(token.text()) + " is no action; " + what_is_expected);
    }
    if (list.empty()) rank.fail("a rank without actions; expected some");
  }
  if (lists.ranks.empty()) ranks.fail("no ranks; expected a list for each");
  return lists;
}

/// Tables are indexed by these numbers, so a stray large one would cost their memory.
void require_dense(const std::string& file, const PipelineLists& lists) {
  const PipelineExtent extent = extent_of(lists);
  const std::int64_t most = 1024 + 16 * static_cast<std::int64_t>(n_actions(lists));
  std::int64_t cells = extent.pipes;
  for (const std::int32_t factor : {extent.stages, extent.microbatches, extent.slices}) {
    cells *= factor;  // each factor is below 10^7, and the product before it below 2^38
    if (cells > most) {
      throw InputError(file + ": " + std::to_string(extent.stages) + " stages, " +
                       std::to_string(extent.microbatches) + " micro-batches and " +
                       std::to_string(extent.slices) + " slices are named in " +
                       std::to_string(n_actions(lists)) +
                       " actions; expected numbers that count from 0");
    }
  }
}

}  // namespace

PipelineLists read_pipeline_lists(const std::string& file, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  PipelineLists lists = is_json ? read_json(file, text) : read_csv(file, text);
  require_dense(file, lists);
  return lists;
}

std::string lists_csv(const PipelineLists& lists) {
  std::string csv;
  for (const RankList& list : lists.ranks) {
    for (std::size_t first = 0; first < list.size(); first = group_end(list, first))
      csv += (first == 0 ? "" : ",") + table_token(list, first);
    csv += "\n";
  }
  return csv;
}

}  // namespace remat
