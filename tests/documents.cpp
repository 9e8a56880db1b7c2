#include "tests/documents.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "model/text_lines.hpp"

namespace remat {
namespace {

const std::string invariants_page = "docs/invariants.md";
constexpr int n_properties = 54;
constexpr int first_part_to_come = 5;
constexpr int last_part = 8;

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Every match of the pattern, with its groups.
std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

/// A row of the table: | I-12 | what it says | who holds it | planted faults |
const std::regex row_line(R"(\| I-(\d+) \|([^|]*)\|([^|]*)\|([^|]*)\|)");
const std::regex quoted_test(R"re("([^"]+)" in `([^`]+)`)re");
const std::regex short_name_line(R"re(- \*([^*]+)\*: "[^"]+" in `[^`]+`)re");
const std::regex in_italics(R"(\*([^*]+)\*)");
const std::regex in_backticks(R"(`([^`]+)`)");
const std::regex part_to_come(R"(not yet: part (\d+))");
const std::regex fault_number(R"(\b[MX]\d+[a-z]?\b)");

class TableReview {
 public:
  TableReview(const SourceTree& tree, const KnownNames& known) : tree_(&tree), known_(&known) {}

  std::vector<std::string> complaints() {
    const auto page = tree_->find(invariants_page);
    if (page == tree_->end()) return {invariants_page + ":1: no such page"};
    const std::vector<std::string> lines = lines_of(page->second);
    for (at_ = 1; at_ <= lines.size(); ++at_) {
      const bool has_test = review_tests(lines[at_ - 1]);
      std::smatch row;
      if (std::regex_match(lines[at_ - 1], row, short_name_line)) {
        short_names_.insert(row[1].str());
      } else if (std::regex_match(lines[at_ - 1], row, row_line)) {
        review_row(std::stoi(row[1].str()), has_test, row[3].str(), row[4].str());
      } else if (lines[at_ - 1].starts_with("| I-")) {
        complain("a row has a number, what it says, who holds it, and planted faults");
      }
    }
    at_ = 1;
    review_whole();
    return complaints_;
  }

 private:
  void complain(const std::string& rule) {
    complaints_.push_back(invariants_page + ":" + std::to_string(at_) + ": " + rule);
  }

  void review_row(int number, bool has_test, const std::string& holders,
                  const std::string& faults) {
    if (number < 1 || number > n_properties || !seen_.insert(number).second)
      complain("I-" + std::to_string(number) + " is no property, or has a row already");
    const bool has_short_name = review_short_names(holders);
    const bool has_invariant = review_names(std::regex_replace(holders, quoted_test, ""));
    const bool waits = review_parts(holders);
    if (!has_test && !has_short_name && !has_invariant && !waits)
      complain("I-" + std::to_string(number) + " is held by nobody and waits for no part");
    for (const std::smatch& fault : matches(faults, fault_number)) {
      planted_.insert(fault.str());
      if (!holds(known_->mutants, fault.str())) complain("nobody plants " + fault.str());
    }
  }

  bool review_tests(const std::string& line) {
    const std::vector<std::smatch> tests = matches(line, quoted_test);
    for (const std::smatch& test : tests) {
      const auto source = tree_->find(test[2].str());
      if (source == tree_->end()) {
        complain("no file " + test[2].str());
      } else if (!holds(test_case_names(source->second), test[1].str())) {
        complain("no test \"" + test[1].str() + "\" in " + test[2].str());
      }
    }
    return !tests.empty();
  }

  bool review_short_names(const std::string& holders) {
    const std::vector<std::smatch> names = matches(holders, in_italics);
    for (const std::smatch& name : names) {
      if (short_names_.count(name[1].str()) == 0)
        complain(name[0].str() + " is not the short name of a test");
    }
    return !names.empty();
  }

  /// Of what stands in backticks beside the tests: an invariant, or a file.
  bool review_names(const std::string& holders) {
    bool has_invariant = false;
    for (const std::smatch& name : matches(holders, in_backticks)) {
      const std::string text = name[1].str();
      if (holds(known_->invariants, text)) {
        has_invariant = true;
        named_.insert(text);
      } else if (tree_->count(text) == 0) {
        complain("`" + text + "` is neither an invariant nor a file");
      }
    }
    return has_invariant;
  }

  bool review_parts(const std::string& holders) {
    const std::vector<std::smatch> parts = matches(holders, part_to_come);
    for (const std::smatch& part : parts) {
      const int number = std::stoi(part[1].str());
      if (number < first_part_to_come || number > last_part)
        complain("part " + std::to_string(number) + " is not to come");
    }
    return !parts.empty();
  }

  void review_whole() {
    for (int number = 1; number <= n_properties; ++number)
      if (seen_.count(number) == 0) complain("no row for I-" + std::to_string(number));
    for (const std::string& invariant : known_->invariants)
      if (named_.count(invariant) == 0) complain("no row names `" + invariant + "`");
    for (const std::string& mutant : known_->mutants)
      if (planted_.count(mutant) == 0) complain("no row names the planted fault " + mutant);
  }

  const SourceTree* tree_;
  const KnownNames* known_;
  std::size_t at_ = 1;  // the line that is looked at
  std::set<int> seen_;
  std::set<std::string> short_names_;
  std::set<std::string> named_;
  std::set<std::string> planted_;
  std::vector<std::string> complaints_;
};

/// The text of the string literal that begins at `at`; `at` goes behind it.
std::string literal_at(const std::string& source, std::size_t& at) {
  std::string text;
  for (++at; at < source.size() && source[at] != '"'; ++at) {
    if (source[at] == '\\' && at + 1 < source.size()) ++at;
    text += source[at];
  }
  ++at;
  return text;
}

void skip_blanks(const std::string& source, std::size_t& at) {
  while (at < source.size() && std::isspace(static_cast<unsigned char>(source[at])) != 0)
    ++at;
}

/// What follows the mark of a quotation, up to the end of its block.
struct Quotation {
  std::string file;   // none: the block has no mark
  std::size_t line;   // of the block's first line
  std::string block;  // whole lines
};

std::vector<Quotation> quotations_of(const std::string& page) {
  static const std::regex mark(R"(<!-- from (\S+) -->)");
  std::vector<Quotation> found;
  std::string file;
  bool is_inside = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    std::smatch named;
    if (is_inside && line == "```") {
      is_inside = false;
      file.clear();
    } else if (is_inside) {
      found.back().block += line + "\n";
    } else if (std::regex_match(line, named, mark)) {
      file = named[1].str();
    } else if (line == "```cpp") {
      is_inside = true;
      found.push_back({file, number + 1, ""});
    } else {
      file.clear();
    }
  }
  return found;
}

std::string complaint_about(const SourceTree& tree, const Quotation& quotation) {
  if (quotation.file.empty()) return "a block of C++ names the file that it is from";
  const auto source = tree.find(quotation.file);
  if (source == tree.end()) return "no file " + quotation.file;
  if (quotation.block.empty()) return "nothing is quoted";
  const bool is_there = ("\n" + source->second).find("\n" + quotation.block) != std::string::npos;
  return is_there ? "" : quotation.file + " does not say this";
}

}  // namespace

std::vector<std::string> test_case_names(const std::string& source) {
  static const std::string opening = "TEST_CASE(";
  std::vector<std::string> names;
  for (std::size_t at = source.find(opening); at != std::string::npos;
       at = source.find(opening, at)) {
    at += opening.size();
    std::string name;
    for (skip_blanks(source, at); at < source.size() && source[at] == '"'; skip_blanks(source, at))
      name += literal_at(source, at);
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> invariant_table_complaints(const SourceTree& tree,
                                                    const KnownNames& known) {
  return TableReview(tree, known).complaints();
}

std::vector<std::string> quotation_complaints(const SourceTree& tree) {
  std::vector<std::string> complaints;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("docs/") || !path.ends_with(".md")) continue;
    for (const Quotation& quotation : quotations_of(text)) {
      const std::string complaint = complaint_about(tree, quotation);
      if (complaint.empty()) continue;
      complaints.push_back(path);
      complaints.back().append(":").append(std::to_string(quotation.line));
      complaints.back().append(": ").append(complaint);
    }
  }
  return complaints;
}

}  // namespace remat
