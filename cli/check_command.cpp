#include "cli/check_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cli/check_output.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "model/errors.hpp"
#include "properties/invariants/checker.hpp"
#include "properties/invariants/expectations.hpp"
#include "traces/output_file.hpp"
#include "traces/reader.hpp"
#include "traces/summary.hpp"
#include "traces/whole_text.hpp"

namespace remat {
namespace {

// Enough to spread the cost of a block, little enough to stay in the cache.
constexpr std::size_t events_at_once = 2048;

void print(const std::string& text, const std::string& output) {
  OutputFile file(output);
  file.write(text);
  file.commit();
}

void require_known(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (invariant_named(name) != nullptr) continue;
    std::string known;
    for (const InvariantRow& row : invariants())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    throw InputError(fmt::format("unknown invariant '{}'; expected one of {}", name, known));
  }
}

/// One pass over the trace: memory for what is alive, not for the trace.
void judge(const CheckOptions& options, CheckedFile& into) {
  TraceReader reader(into.file);
  Trace block;
  Checker checker(options.invariants);
  SummaryBuilder summary;
  std::int64_t n_events = 0;
  while (!is_interrupted() && reader.read(block, events_at_once) > 0) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      checker.observe(block[i]);
      if (options.summary) summary.observe(block[i]);
    }
    n_events += std::ssize(block);
    block.drop_events();
    if (options.progress) show_progress(fmt::format("{}: {} events", into.file, grouped(n_events)));
  }
  into.verdict = is_interrupted() ? checker.stop() : checker.finish();
  if (options.summary) into.summary = summary.finish();
  into.unknown = reader.unknown();
}

CheckedFile checked_file(const CheckOptions& options, const std::string& path) {
  CheckedFile file;
  file.file = path;
  try {
    judge(options, file);
  } catch (const InputError& error) {
    file.unreadable = error.what();
  } catch (const HeaderError& error) {
    file.unreadable = fmt::format("{}:1: {}", shown_path(path), error.what());
  }
  if (options.progress) show_progress("");
  return file;
}

ExitCode exit_code(const CheckedFile& file) {
  if (file.unreadable) return ExitCode::bad_input;
  return file.verdict.holds() ? ExitCode::fine : ExitCode::found;
}

/// `--invariant NAME run.jsonl`: a word behind the names that is a file is a trace.
CheckOptions sorted_out(CheckOptions options) {
  const auto is_a_trace = [](const std::string& word) {
    return invariant_named(word) == nullptr && (word == "-" || std::filesystem::exists(word));
  };
  auto& names = options.invariants;
  const auto first_trace =
      std::stable_partition(names.begin(), names.end(), std::not_fn(is_a_trace));
  options.traces.insert(options.traces.end(), first_trace, names.end());
  names.erase(first_trace, names.end());
  return options;
}

ExitCode check_all(const CheckOptions& options) {
  require_known(options.invariants);
  if (options.list) {
    print(options.json ? invariants_json() : invariants_text(), options.output);
    return ExitCode::fine;
  }
  if (options.traces.empty())
    throw InputError("no trace is named; expected one or more files (- is standard input)");
  catch_interrupts();
  std::vector<CheckedFile> files;
  ExitCode code = ExitCode::fine;
  for (const std::string& path : options.traces) {
    if (is_interrupted()) break;
    files.push_back(checked_file(options, path));
    code = worse(code, exit_code(files.back()));
  }
  const bool interrupted = is_interrupted();
  const CheckPrinting printing{options.verbose, options.output == "-" && output_has_colours(),
                               interrupted};
  const bool nothing_to_show = files.size() == 1 && files.front().unreadable;
  if (options.json) {
    print(check_json(files, interrupted), options.output);
  } else if (!nothing_to_show) {
    print(check_text(files, printing), options.output);
  }
  for (const CheckedFile& file : files)
    if (file.unreadable) print_error(*file.unreadable);
  return interrupted ? ExitCode::interrupted : code;
}

}  // namespace

ExitCode check_command(const CheckOptions& options) {
  return check_all(sorted_out(options));
}

}  // namespace remat
