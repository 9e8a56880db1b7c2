#include "cli/check_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "traces/summary_json.hpp"

namespace remat {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t findings_shown_max = 10;  // of one file; --json has them all

/// File names need not be UTF-8, JSON must be.
std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json file_json(const CheckedFile& file) {
  ordered_json row = {{"file", file.file},
                      {"events", file.verdict.n_events},
                      {"verdict", file.verdict_name()},
                      {"violations", ordered_json::array()},
                      {"not_checked", ordered_json::array()}};
  if (file.unreadable) row["error"] = *file.unreadable;
  for (const Finding& finding : file.verdict.findings) {
    row["violations"].push_back({{"invariant", finding.invariant},
                                 {"seq", finding.seq},
                                 {"message", finding.message},
                                 {"events", finding.events}});
  }
  for (const NotChecked& unchecked : file.verdict.not_checked)
    row["not_checked"].push_back({{"invariant", unchecked.invariant}, {"needs", unchecked.needs}});
  if (file.verdict.n_left_out > 0) row["violations_left_out"] = file.verdict.n_left_out;
  if (!file.unknown.kinds.empty()) row["unknown_kinds"] = file.unknown.kinds;
  if (!file.unknown.fields.empty()) row["unknown_fields"] = file.unknown.fields;
  if (file.summary) row["summary"] = to_json(*file.summary);
  return row;
}

std::int64_t n_violations(const std::vector<CheckedFile>& files) {
  std::int64_t n = 0;
  for (const CheckedFile& file : files)
    n += std::ssize(file.verdict.findings) + file.verdict.n_left_out;
  return n;
}

std::string count_of(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(n), noun, n == 1 ? "" : "s");
}

std::string found_in(const CheckedFile& file) {
  if (file.unreadable) return "could not be read, see below";
  if (file.verdict.holds()) return "";
  const Finding& first = file.verdict.findings.front();
  std::string text = fmt::format("{} at event {}", first.invariant, first.seq);
  const std::int64_t more = std::ssize(file.verdict.findings) + file.verdict.n_left_out - 1;
  if (more > 0) text += fmt::format(", and {} more", grouped(more));
  return text;
}

Colour colour_of(const CheckedFile& file) {
  if (file.unreadable) return Colour::yellow;
  return file.verdict.holds() ? Colour::green : Colour::red;
}

std::string table(const std::vector<CheckedFile>& files, bool colours) {
  std::size_t file_width = width("trace");
  for (const CheckedFile& file : files)
    file_width = std::max(file_width, width(file.file));
  std::string text = fmt::format("{}  {:>11}  {:<9}  {}\n", padded("trace", file_width), "events",
                                 "verdict", "found");
  for (const CheckedFile& file : files) {
    std::string row = fmt::format(
        "{}  {:>11}  {}  {}", padded(file.file, file_width), grouped(file.verdict.n_events),
        painted(fmt::format("{:<9}", file.verdict_name()), colour_of(file), colours),
        found_in(file));
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string findings_text(const CheckedFile& file) {
  if (file.unreadable || file.verdict.holds()) return "";
  std::string text = fmt::format("\n{}\n", file.file);
  const std::size_t n_shown = std::min(file.verdict.findings.size(), findings_shown_max);
  for (std::size_t i = 0; i < n_shown; ++i) {
    const Finding& finding = file.verdict.findings[i];
    text += fmt::format("  event {}: {}\n    {}\n    events: {}\n", finding.seq, finding.invariant,
                        finding.message, fmt::join(finding.events, ", "));
  }
  const std::int64_t more = std::ssize(file.verdict.findings) + file.verdict.n_left_out -
                            static_cast<std::int64_t>(n_shown);
  if (more > 0) text += fmt::format("  … and {} more; --json lists them\n", grouped(more));
  return text;
}

std::string details_text(const CheckedFile& file) {
  std::string text;
  for (const NotChecked& unchecked : file.verdict.not_checked) {
    text += fmt::format("  not checked: {}; the trace would need {}\n", unchecked.invariant,
                        unchecked.needs);
  }
  for (const auto& [kind, n] : file.unknown.kinds)
    text += fmt::format("  unknown kind {}: {}\n", kind, count_of(n, "event"));
  for (const auto& [field, n] : file.unknown.fields)
    text += fmt::format("  unknown field {}: {}\n", field, count_of(n, "event"));
  return text.empty() ? text : fmt::format("\n{}\n{}", file.file, text);
}

/// How many of the invariants that ran each file was held against.
std::string coverage_text(const std::vector<CheckedFile>& files) {
  std::map<std::string_view, std::int64_t> unchecked;
  std::int64_t n_judged = 0;
  for (const CheckedFile& file : files) {
    if (file.unreadable) continue;
    ++n_judged;
    std::map<std::string_view, bool> once;
    for (const NotChecked& row : file.verdict.not_checked)
      once[row.invariant] = true;
    for (const auto& [name, is_unchecked] : once)
      ++unchecked[name];
  }
  std::string names;
  for (const InvariantRow& row : invariants()) {
    if (const auto found = unchecked.find(row.name);
        found != unchecked.end() && found->second == n_judged)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  if (names.empty() || n_judged == 0) return "";
  return fmt::format("Not checked in {}, for want of what they need: {}.\n",
                     n_judged == 1 ? "it" : "any of them", names);
}

std::string totals_text(const std::vector<CheckedFile>& files) {
  std::int64_t n_events = 0;
  std::map<std::string_view, std::int64_t> verdicts;
  for (const CheckedFile& file : files) {
    n_events += file.verdict.n_events;
    ++verdicts[file.verdict_name()];
  }
  std::string text = fmt::format("\n{}, {}: {} ok", count_of(std::ssize(files), "trace"),
                                 count_of(n_events, "event"), verdicts["ok"]);
  if (verdicts["violation"] > 0) {
    text += fmt::format(", {} with {}", verdicts["violation"],
                        count_of(n_violations(files), "violation"));
  }
  if (verdicts["invalid"] > 0) text += fmt::format(", {} that cannot be read", verdicts["invalid"]);
  return text + ".\n";
}

std::string next_text(const std::vector<CheckedFile>& files) {
  const auto shows = [](const CheckedFile& file) {
    return !file.unreadable && !file.verdict.holds();
  };
  const auto found = std::find_if(files.begin(), files.end(), shows);
  std::string text = "Try next: rematsim check --list (what each invariant says)";
  if (files.empty()) return text + "\n";
  const std::string& file = found == files.end() ? files.front().file : found->file;
  return text +
         fmt::format(
             ", rematsim check {} --summary (its counts and bytes), --json (for scripts).\n", file);
}

}  // namespace

std::string_view CheckedFile::verdict_name() const {
  if (unreadable) return "invalid";
  return verdict.holds() ? "ok" : "violation";
}

std::string check_json(const std::vector<CheckedFile>& files, bool interrupted) {
  ordered_json result = {
      {"version", 1}, {"files", ordered_json::array()}, {"violations", n_violations(files)}};
  for (const CheckedFile& file : files)
    result["files"].push_back(file_json(file));
  if (interrupted) result["interrupted"] = true;
  return dumped(result);
}

std::string check_text(const std::vector<CheckedFile>& files, const CheckPrinting& printing) {
  std::string text = table(files, printing.colours);
  for (const CheckedFile& file : files)
    text += findings_text(file);
  for (const CheckedFile& file : files) {
    if (file.summary && !file.unreadable)
      text += fmt::format("\n{}\n{}", file.file, summary_text(*file.summary));
  }
  if (printing.verbose) {
    for (const CheckedFile& file : files)
      text += details_text(file);
  }
  text += totals_text(files) + coverage_text(files);
  if (printing.interrupted)
    text += "Interrupted: the last trace was judged as far as it was read.\n";
  return text + next_text(files);
}

std::string invariants_json() {
  ordered_json result = {{"version", 1}, {"invariants", ordered_json::array()}};
  for (const InvariantRow& row : invariants()) {
    result["invariants"].push_back(
        {{"name", row.name}, {"holds_when", row.holds_when}, {"example", row.example}});
  }
  return dumped(result);
}

std::string invariants_text() {
  std::string text;
  for (const InvariantRow& row : invariants())
    text += fmt::format("{}\n  {}\n  {}\n", row.name, row.holds_when, row.example);
  return text;
}

}  // namespace remat
