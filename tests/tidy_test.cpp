#include "tests/tidy.hpp"

#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace remat;
using Complaints = std::vector<std::string>;

TEST_CASE("the tree keeps the rules of the house", "[tidy]") {
  const auto tree = read_source_tree(REMATSIM_SOURCE_DIR);
  REQUIRE(tree.count("tests/tidy_test.cpp") == 1);  // else it looked in the wrong place
  for (const auto& complaint : tidy_complaints(tree))
    FAIL_CHECK(complaint);
}

namespace {

/// A small tree that keeps every rule.
SourceTree good_tree() {
  return {
      {"model/CMakeLists.txt", "rematsim_library(model SOURCES op.cpp)\n"},
      {"model/op.hpp", "#pragma once\n"},
      {"model/op.cpp", "#include \"model/op.hpp\"\n\n#include <vector>\n"},
      {"traces/event.hpp", "#pragma once\n#include \"model/op.hpp\"\n"},
      {"schedules/registry.hpp", "#pragma once\n"},
      {"schedules/gpipe.hpp", "#pragma once\n"},
      {"sim/engine.hpp", "#pragma once\n#include \"schedules/registry.hpp\"\n"},
      {"properties/CMakeLists.txt",
       "rematsim_library(invariants SOURCES\n  invariants/no_leak.cpp)\n"},
      {"properties/invariants/no_leak.hpp", "#pragma once\n/// Invariant: nothing leaks.\n"},
      {"properties/invariants/no_leak.cpp", "#include \"properties/invariants/no_leak.hpp\"\n"},
      {"properties/fuzz.hpp", "#pragma once\n#include \"properties/invariants/no_leak.hpp\"\n"},
      {"docs/trace-format.md", "`no_leak`\n"},
      {"README.md", "`no_leak`\n"},
  };
}

/// What is said about the good tree with one file replaced or added.
Complaints complaints_with(const std::string& path, const std::string& text) {
  auto tree = good_tree();
  tree[path] = text;
  return tidy_complaints(tree);
}

Complaints complaints_about_code(const std::string& line) {
  return complaints_with("model/op.hpp", "#pragma once\n" + line + "\n");
}

}  // namespace

TEST_CASE("tidy has nothing to say about a good tree", "[tidy]") {
  CHECK(tidy_complaints(good_tree()).empty());
}

TEST_CASE("tidy names an include that the rooms do not allow", "[tidy]") {
  struct Row {
    std::string path, header, rule;
  };
  const std::vector<Row> rows = {
      {"model/a.hpp", "traces/event.hpp", "model may not include traces"},
      {"traces/a.hpp", "properties/invariants/no_leak.hpp",
       "traces may not include properties/invariants"},
      {"schedules/a.hpp", "sim/engine.hpp", "schedules may not include sim"},
      {"sim/a.hpp", "properties/fuzz.hpp", "sim may not include properties"},
      {"sim/a.hpp", "schedules/gpipe.hpp",
       "sim includes the interfaces and the registry of schedules only"},
      {"properties/invariants/a.hpp", "sim/engine.hpp",
       "properties/invariants may not include sim"},
      {"properties/invariants/a.hpp", "properties/fuzz.hpp",
       "properties/invariants may not include properties"},
      {"gpu_validate/a.hpp", "sim/engine.hpp", "gpu_validate may not include sim"},
  };
  for (const auto& row : rows) {
    CHECK(complaints_with(row.path, "#pragma once\n#include \"" + row.header + "\"\n") ==
          Complaints{row.path + ":2: " + row.rule});
  }
  CHECK(complaints_with("cli/a.hpp", "#pragma once\n#include \"sim/engine.hpp\"\n").empty());
  CHECK(complaints_with("tests/a.hpp", "#pragma once\n#include \"schedules/gpipe.hpp\"\n").empty());
}

TEST_CASE("tidy names an include that leads nowhere, and our own in angle brackets", "[tidy]") {
  CHECK(complaints_about_code("#include \"model/gone.hpp\"") ==
        Complaints{"model/op.hpp:2: no file \"model/gone.hpp\" (from the repository root; others' "
                   "stand in <>)"});
  CHECK(complaints_with("traces/event.hpp", "#pragma once\n#include <model/op.hpp>\n") ==
        Complaints{"traces/event.hpp:2: our own headers stand in quotes, not in <>"});
}

TEST_CASE("tidy bans what makes two runs differ, outside of tests", "[tidy]") {
  const std::map<std::string, std::string> bad = {
      {"std::unordered_map<int, int> m;", "unordered container"},
      {"std::map<const Op*, int> m;", "pointer as key"},
      {"std::hash<Op*> h;", "pointer as key"},
      {"std::random_device d;", "random_device"},
      {"int i = std::rand();", "rand"},
      {"srand(1);", "rand"},
      {"std::uniform_int_distribution<int> d(0, 9);", "std::…_distribution"},
      {"std::shuffle(a, b, c);", "shuffle"},
      {"auto t = std::chrono::steady_clock::now();", "wall clock"},
      {"auto t = std::chrono::system_clock::now();", "wall clock"},
      {"auto t = high_resolution_clock::now();", "wall clock"},
      {"auto t = time(nullptr);", "time"},
      {"auto id = std::this_thread::get_id();", "thread id"},
      {"setlocale(LC_ALL, \"\");", "locale"},
  };
  for (const auto& [code, name] : bad) {
    CHECK(complaints_about_code(code) == Complaints{"model/op.hpp:2: not deterministic: " + name});
    CHECK(complaints_with("tests/a.hpp", "#pragma once\n" + code + "\n").empty());
  }
  for (const std::string code : {
           "auto t = event.time();",
           "int operand(int);",
           "int runtime(int);",
           "// no random_device",
           "std::map<int, Op*> m;",
           "const char* s = R\"(time(rand()))\";",
       }) {
    CHECK(complaints_about_code(code).empty());
  }
}

TEST_CASE("tidy lets one file look at the time, and at nothing else", "[tidy]") {
  auto tree = good_tree();
  tree["cli/CMakeLists.txt"] = "add_executable(rematsim stopwatch.cpp other.cpp)\n";
  tree["cli/stopwatch.cpp"] = "auto t = std::chrono::steady_clock::now();\n";
  tree["cli/other.cpp"] = "\n";
  CHECK(tidy_complaints(tree).empty());
  tree["cli/other.cpp"] = tree["cli/stopwatch.cpp"];
  tree["cli/stopwatch.cpp"] = "srand(1);\n";
  CHECK(tidy_complaints(tree) == Complaints{"cli/other.cpp:1: not deterministic: wall clock",
                                            "cli/stopwatch.cpp:1: not deterministic: rand"});
}

TEST_CASE("tidy wants each test to write in a folder of its own", "[tidy]") {
  const std::string code = R"(#pragma once
auto p = std::filesystem::temp_directory_path();
)";
  CHECK(complaints_with("tests/a.hpp", code) ==
        Complaints{"tests/a.hpp:2: a test writes into a TemporaryFolder of its own"});
  CHECK(complaints_with("tests/traces/temporary_folder.hpp", code).empty());
}

TEST_CASE("tidy counts characters and lines, but not those of raw strings", "[tidy]") {
  CHECK(complaints_about_code("//" + std::string(98, 'x')).empty());
  CHECK(complaints_about_code("//" + std::string(99, 'x')) ==
        Complaints{"model/op.hpp:2: a line has at most 100 columns"});
  std::string dashes = "//";
  for (int i = 0; i < 98; ++i)
    dashes += "—";
  CHECK(complaints_about_code(dashes).empty());
  CHECK(complaints_about_code("auto s = R\"x(\n" + std::string(200, 'y') + ")x\";\nsrand(1);") ==
        Complaints{"model/op.hpp:4: not deterministic: rand"});
  CHECK(complaints_about_code("auto e = \"ERROR\", f = \"DW R\"; srand(1); g(\"\");") ==
        Complaints{"model/op.hpp:2: not deterministic: rand"});
  CHECK(complaints_about_code(std::string(398, '\n')).empty());
  CHECK(complaints_about_code(std::string(399, '\n')) ==
        Complaints{"model/op.hpp:401: a file past 400 lines holds two things"});
}

TEST_CASE("tidy looks at the names and the place of files", "[tidy]") {
  CHECK(complaints_with("model/a.hpp", "\n") ==
        Complaints{"model/a.hpp:1: a header has one #pragma once"});
  for (const std::string name : {"utils", "common", "trace_helpers", "types", "memory_manager"}) {
    CHECK(complaints_with("model/" + name + ".hpp", "#pragma once\n") ==
          Complaints{"model/" + name + ".hpp:1: a file is named after the one concept it holds"});
  }
  CHECK(complaints_with("engine/a.hpp", "#pragma once\n") ==
        Complaints{"engine/a.hpp:1: 'engine' is no room of this house"});
}

TEST_CASE("tidy names a source that is not listed", "[tidy]") {
  CHECK(complaints_with("model/lost.cpp", "\n") ==
        Complaints{"model/lost.cpp:1: not listed in model/CMakeLists.txt"});
  CHECK(complaints_with("model/CMakeLists.txt",
                        "# op.cpp\nrematsim_library(model SOURCES drop.cpp)") ==
        Complaints{"model/op.cpp:1: not listed in model/CMakeLists.txt"});
  CHECK(complaints_with("tests/lost.cpp", "\n") ==
        Complaints{"tests/lost.cpp:1: no CMakeLists.txt above it"});
}

TEST_CASE("tidy names an invariant that the documents do not", "[tidy]") {
  CHECK(complaints_with("README.md", "no_leak_at_all\n") ==
        Complaints{"properties/invariants/no_leak.hpp:1: invariant not named in README.md"});
  CHECK(complaints_with("docs/trace-format.md", "\n") ==
        Complaints{
            "properties/invariants/no_leak.hpp:1: invariant not named in docs/trace-format.md"});
  auto tree = good_tree();
  tree["properties/invariants/no_leak.hpp"] = "#pragma once\n";
  tree["properties/CMakeLists.txt"] += "  invariants/registry.cpp\n";
  tree["properties/invariants/registry.cpp"] = "\n";
  CHECK(tidy_complaints(tree) ==
        Complaints{"properties/invariants/registry.cpp:1: no header beside it says /// Invariant"});
}
