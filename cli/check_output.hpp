#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/invariants/checker.hpp"
#include "traces/reader.hpp"
#include "traces/summary.hpp"

namespace remat {

/// What came out of one file.
struct CheckedFile {
  std::string file;
  Verdict verdict;
  std::optional<std::string> unreadable;  // why it could not be judged
  std::optional<TraceSummary> summary;
  UnknownCounts unknown;

  /// `ok`, `violation` or `invalid`.
  std::string_view verdict_name() const;
};

struct CheckPrinting {
  bool verbose = false;
  bool colours = false;
  bool interrupted = false;
};

/// One JSON object, as docs/cli.md promises it.
std::string check_json(const std::vector<CheckedFile>& files, bool interrupted);
/// A table of the files, then what was found in each, then what to try next.
std::string check_text(const std::vector<CheckedFile>& files, const CheckPrinting& printing);
std::string invariants_json();
std::string invariants_text();

}  // namespace remat
