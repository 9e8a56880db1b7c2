#pragma once

// The rules of the house that a machine can check.

#include <map>
#include <string>
#include <vector>

namespace remat {

/// The text of every file that some rule looks at, by its path from the repository root.
using SourceTree = std::map<std::string, std::string>;

/// The files under `root`, without build outputs and dotfiles: those are not the house.
SourceTree read_source_tree(const std::string& root);

/// What breaks a rule, each `file:line: rule`, ready to click; ordered by file.
std::vector<std::string> tidy_complaints(const SourceTree& tree);

}  // namespace remat
