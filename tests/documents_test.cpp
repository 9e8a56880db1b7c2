#include "tests/documents.hpp"

#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "properties/invariants/registry.hpp"
#include "properties/mutants.hpp"

namespace remat {
namespace {

using Complaints = std::vector<std::string>;

KnownNames known_names() {
  KnownNames known;
  for (const InvariantRow& row : invariants())
    known.invariants.emplace_back(row.name);
  for (const Mutant& mutant : mutants())
    known.mutants.emplace_back(mutant.name.substr(0, mutant.name.find(' ')));
  return known;
}

/// Rows I-1 to I-54 of a table in which nothing is wrong.
std::vector<std::string> good_rows() {
  std::vector<std::string> rows;
  for (int i = 1; i <= 54; ++i)
    rows.push_back("| I-" + std::to_string(i) + " | what it says | `no_leak` | M1 |");
  rows[1] = "| I-2 | … | \"a test\" in `tests/a_test.cpp`; `sim/engine.cpp` | |";
  rows[2] = "| I-3 | … | not yet: part 5 | |";
  return rows;
}

/// What is said of the table where row I-`number` is another.
Complaints complaints_with(std::size_t number, const std::string& row) {
  std::vector<std::string> rows = good_rows();
  rows[number - 1] = row;
  std::string page;
  for (const std::string& line : rows)
    page += line + "\n";
  const SourceTree tree = {{"docs/invariants.md", page},
                           {"tests/a_test.cpp", "TEST_CASE(\"a test\", \"[a]\") {}\n"},
                           {"sim/engine.cpp", "\n"}};
  return invariant_table_complaints(tree, {{"no_leak"}, {"M1"}});
}

Complaints complaints_about(const std::string& page) {
  return quotation_complaints({{"docs/how.md", page}, {"tests/a.hpp", "one\n  two\nthree\n"}});
}

}  // namespace

TEST_CASE("docs/invariants.md is true: who holds each property is there", "[tidy]") {
  const SourceTree tree = read_source_tree(REMATSIM_SOURCE_DIR);
  for (const std::string& complaint : invariant_table_complaints(tree, known_names()))
    FAIL_CHECK(complaint);
}

TEST_CASE("what docs/ quotes of the source stands in the source", "[tidy]") {
  const SourceTree tree = read_source_tree(REMATSIM_SOURCE_DIR);
  for (const std::string& complaint : quotation_complaints(tree))
    FAIL_CHECK(complaint);
}

TEST_CASE("docs/survey-figures.md names the test of each figure", "[tidy]") {
  const SourceTree tree = read_source_tree(REMATSIM_SOURCE_DIR);
  const std::string& page = tree.at("docs/survey-figures.md");
  std::set<std::string> named;
  const std::regex quoted(R"re("(E\d+: [^"]+)")re");
  for (std::sregex_iterator name(page.begin(), page.end(), quoted), end; name != end; ++name)
    named.insert((*name)[1].str());
  std::set<std::string> tests;
  for (const char* file :
       {"tests/survey/chain_figures_test.cpp", "tests/survey/model_figures_test.cpp"}) {
    for (const std::string& name : test_case_names(tree.at(file)))
      tests.insert(name);
  }
  CHECK(named == tests);
  for (int i = 1; i <= 29; ++i)
    CHECK(page.find("| E" + std::to_string(i) + " | ") != std::string::npos);
}

TEST_CASE("a row of the table names what there is", "[tidy]") {
  CHECK(complaints_with(2, good_rows()[1]).empty());
  const std::string at = "docs/invariants.md:5: ";
  CHECK(complaints_with(5, "| I-5 | … | `no_lack` | |") ==
        Complaints{at + "`no_lack` is neither an invariant nor a file",
                   at + "I-5 is held by nobody and waits for no part"});
  CHECK(complaints_with(5, "| I-5 | … | \"no test\" in `tests/a_test.cpp` | |") ==
        Complaints{at + "no test \"no test\" in tests/a_test.cpp"});
  CHECK(complaints_with(5, "| I-5 | … | \"a test\" in `tests/b_test.cpp` | |") ==
        Complaints{at + "no file tests/b_test.cpp"});
  CHECK(complaints_with(5, "| I-5 | … | `no_leak` | M2, M1 |") ==
        Complaints{at + "nobody plants M2"});
}

TEST_CASE("a row of the table may use the short name of a test that is given above", "[tidy]") {
  const SourceTree source = {{"tests/a_test.cpp", "TEST_CASE(\"a test\", \"[a]\") {}\n"}};
  const auto first_complaint = [&](const std::string& page) {
    SourceTree tree = source;
    tree["docs/invariants.md"] = page;
    return invariant_table_complaints(tree, {}).front();
  };
  const std::string row = "| I-1 | … | *all* | |\n";
  CHECK(first_complaint("- *all*: \"a test\" in `tests/a_test.cpp`\n" + row) ==
        "docs/invariants.md:1: no row for I-2");
  CHECK(first_complaint("- *all*: \"b test\" in `tests/a_test.cpp`\n" + row) ==
        "docs/invariants.md:1: no test \"b test\" in tests/a_test.cpp");
  CHECK(first_complaint(row) == "docs/invariants.md:1: *all* is not the short name of a test");
}

TEST_CASE("a row of the table says who holds its property, or what it waits for", "[tidy]") {
  const std::string at = "docs/invariants.md:5: ";
  CHECK(complaints_with(5, "| I-5 | … | `sim/engine.cpp` | |") ==
        Complaints{at + "I-5 is held by nobody and waits for no part"});
  CHECK(complaints_with(5, "| I-5 | … | not yet: part 4 | |") ==
        Complaints{at + "part 4 is not to come"});
  CHECK(complaints_with(5, "| I-5 | … | `no_leak` |") ==
        Complaints{at + "a row has a number, what it says, who holds it, and planted faults",
                   "docs/invariants.md:1: no row for I-5"});
}

TEST_CASE("the table has each property once, and misses no invariant and no planted fault",
          "[tidy]") {
  CHECK(complaints_with(5, "| I-6 | … | `no_leak` | |") ==
        Complaints{"docs/invariants.md:6: I-6 is no property, or has a row already",
                   "docs/invariants.md:1: no row for I-5"});
  CHECK(complaints_with(5, "| I-55 | … | `no_leak` | |") ==
        Complaints{"docs/invariants.md:5: I-55 is no property, or has a row already",
                   "docs/invariants.md:1: no row for I-5"});
  CHECK(invariant_table_complaints({}, {}) == Complaints{"docs/invariants.md:1: no such page"});
  const Complaints of_empty =
      invariant_table_complaints({{"docs/invariants.md", ""}}, {{"no_leak"}, {"M1"}});
  REQUIRE(of_empty.size() == 56);
  CHECK(of_empty[54] == "docs/invariants.md:1: no row names `no_leak`");
  CHECK(of_empty[55] == "docs/invariants.md:1: no row names the planted fault M1");
}

TEST_CASE("names of test cases are read as the compiler reads them", "[tidy]") {
  CHECK(test_case_names("TEST_CASE(\"one\", \"[a]\") {}\nTEST_CASE(\n    \"two \"\n    \"parts\",\n"
                        "    \"[a]\") {}\nTEST_CASE(\"a \\\"b\\\"\", \"[a]\") {}\n") ==
        std::vector<std::string>{"one", "two parts", "a \"b\""});
  CHECK(test_case_names("int main() {}\n").empty());
}

TEST_CASE("a quotation is a run of whole lines of the file that it names", "[tidy]") {
  const std::string mark = "<!-- from tests/a.hpp -->\n";
  CHECK(complaints_about("text\n\n" + mark + "```cpp\none\n  two\n```\n").empty());
  CHECK(complaints_about("```sh\nls\n```\n").empty());
  const auto is_said = [&](const std::string& page, const std::string& complaint) {
    CHECK(complaints_about(page) == Complaints{"docs/how.md:" + complaint});
  };
  is_said(mark + "```cpp\none\n  three\n```\n", "3: tests/a.hpp does not say this");
  is_said(mark + "```cpp\ntwo\n```\n", "3: tests/a.hpp does not say this");
  is_said(mark + "```cpp\nthr\n```\n", "3: tests/a.hpp does not say this");
  is_said(mark + "```cpp\n```\n", "3: nothing is quoted");
  is_said("<!-- from tests/b.hpp -->\n```cpp\none\n```\n", "3: no file tests/b.hpp");
  is_said("```cpp\none\n```\n", "2: a block of C++ names the file that it is from");
  is_said(mark + "text\n```cpp\none\n```\n", "4: a block of C++ names the file that it is from");
}

}  // namespace remat
