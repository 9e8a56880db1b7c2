#include "tests/properties/invariants/checked_trace.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "properties/invariants/registry.hpp"
#include "traces/byte_source.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

constexpr std::string_view plain_header =
    R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1})";

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

bool has_number(std::string_view event) {
  return event.find(R"("seq":)") == 1;
}

std::string numbered(std::string_view event, std::int64_t seq) {
  if (event.empty() || event.front() != '{')
    throw std::invalid_argument("not an event: " + std::string(event));
  if (has_number(event)) return std::string(event);
  return "{\"seq\":" + std::to_string(seq) + "," + std::string(event.substr(1));
}

std::string with_numbers_and_header(std::string_view json_lines) {
  std::string text;
  std::int64_t seq = 1;
  std::istringstream lines{std::string(json_lines)};
  for (std::string whole; std::getline(lines, whole);) {
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.substr(0, 2) == "//") continue;
    const bool is_header = line.find(R"("kind":"header")") != std::string_view::npos;
    if (text.empty() && !is_header) text += std::string(plain_header) + "\n";
    text += numbered(line, is_header ? 0 : seq++) + "\n";
  }
  return text.empty() ? std::string(plain_header) + "\n" : text;
}

std::vector<std::string> invariants_to_run() {
  const char* sabotaged = std::getenv("REMATSIM_SABOTAGE");
  if (sabotaged == nullptr || *sabotaged == '\0') return {};
  if (invariant_named(sabotaged) == nullptr)
    throw std::invalid_argument("REMATSIM_SABOTAGE names no invariant: " + std::string(sabotaged));
  std::vector<std::string> names;
  for (const InvariantRow& row : invariants())
    if (row.name != sabotaged) names.emplace_back(row.name);
  return names;
}

void write_seqs(std::ostream& out, const std::vector<std::int64_t>& seqs) {
  out << "{";
  for (std::size_t i = 0; i < seqs.size(); ++i)
    out << (i > 0 ? ", " : "") << seqs[i];
  out << "}";
}

TraceReader reader_of(std::string_view text) {
  return TraceReader(bytes_in_memory(text), "t");
}

Trace in_memory(std::string_view text) {
  TraceReader reader = reader_of(text);
  Trace trace;
  while (reader.read(trace, 1000) > 0) {
  }
  return trace;
}

/// The verdict of a checker that never has more than one event before it.
Verdict streamed(std::string_view text, const std::vector<std::string>& names) {
  TraceReader reader = reader_of(text);
  Trace trace;
  Checker checker(names);
  while (reader.read(trace, 1) > 0) {
    checker.observe(trace[0]);
    trace.drop_events();
  }
  return checker.finish();
}

}  // namespace

Trace hand_made(std::string_view json_lines) {
  return in_memory(with_numbers_and_header(json_lines));
}

Verdict checked(std::string_view json_lines) {
  const std::string text = with_numbers_and_header(json_lines);
  const std::vector<std::string> names = invariants_to_run();
  Verdict verdict = check(in_memory(text), names);
  const Verdict one_by_one = streamed(text, names);
  if (one_by_one.findings != verdict.findings || one_by_one.not_checked != verdict.not_checked)
    throw std::logic_error("the verdict on a stream is not that on the whole trace");
  return verdict;
}

std::string needs(const Verdict& verdict, std::string_view invariant) {
  std::string needed;
  for (const NotChecked& row : verdict.not_checked)
    if (row.invariant == invariant) needed += (needed.empty() ? "" : "; ") + row.needs;
  return needed;
}

std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  out << "{\"" << finding.invariant << "\", " << finding.seq << ", \"" << finding.message << "\", ";
  write_seqs(out, finding.events);
  return out << "}";
}

std::ostream& operator<<(std::ostream& out, const NotChecked& unchecked) {
  return out << "{\"" << unchecked.invariant << "\", \"" << unchecked.needs << "\"}";
}

}  // namespace remat
