#pragma once

// What docs/ says of the code, held against the code.

#include <string>
#include <vector>

#include "tests/tidy.hpp"

namespace remat {

/// What docs/invariants.md may speak of.
struct KnownNames {
  std::vector<std::string> invariants;  // as `check` prints them
  std::vector<std::string> mutants;     // numbers of planted faults: M23, X1
};

/// What is not true in the table of docs/invariants.md, each `file:line: rule`. In its rows stands
/// who holds the property: invariants and files in backticks, `"a test" in` its file or a short
/// name given to it above, the part of the work that it waits for; and which planted faults show
/// it.
std::vector<std::string> invariant_table_complaints(const SourceTree& tree,
                                                    const KnownNames& known);

/// What the documents quote and the source does not say. Each block of C++ in docs/ stands behind a
/// comment that names its file, `<!-- from tests/a.cpp -->`, and is a run of whole lines of it.
std::vector<std::string> quotation_complaints(const SourceTree& tree);

/// Names of the test cases of a source.
std::vector<std::string> test_case_names(const std::string& source);

}  // namespace remat
