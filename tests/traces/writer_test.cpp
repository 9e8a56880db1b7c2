#include "traces/writer.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "model/errors.hpp"
#include "tests/traces/shared_traces.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "tests/traces/trace_difference.hpp"
#include "tests/traces/trace_text.hpp"
#include "traces/output_file.hpp"
#include "traces/reader.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string rewritten(const std::string& line) {
  const std::string lines = json_lines(trace_in(with_header(line)));
  return lines.substr(lines.find('\n') + 1);
}

/// An event of many kinds of value, in the order in which the writer puts them.
const std::string a_pack =
    R"({"seq":1,"ts_ns":-5,"rank":0,"phase":"forward","kind":"pack","live":null,)"
    R"("gid":["session","s1"],"graph_task":-1,"node":["AddBackward0",18446744073709551615],)"
    R"("frame":3,"why":"a \"quote\"","tensor":{"t":1,"s":2,"dtype":"f32","shape":[2,0],)"
    R"("stride":[],"off":0,"bytes":0,"v":1,"name":"x","device":"cpu","value":{"a": 1e400},)"
    R"("odd":[1,{}]},"slot":"p\n1","idx":0,"path":[1, "a"],"view":true,"x":0.10,"y":null})"
    "\n";

}  // namespace

TEST_CASE("an event is written as one line, its fields in the order of the format", "[traces]") {
  CHECK(rewritten(a_pack) == a_pack);
  CHECK(rewritten(R"({"slot":"p1","x":1,"kind":"pack","phase":"forward","seq":1,"rank":0})") ==
        R"({"seq":1,"rank":0,"phase":"forward","kind":"pack","slot":"p1","x":1})"
        "\n");
}

TEST_CASE("white space between values is not kept, that inside unknown ones is", "[traces]") {
  CHECK(rewritten("{ \"seq\" : 1 , \"kind\" : \"note\" ,\t\"msg\" : \"a\" , \"x\" : [ 1 ] }\r") ==
        "{\"seq\":1,\"kind\":\"note\",\"msg\":\"a\",\"x\":[ 1 ]}\n");
}

TEST_CASE("an event without a phase is written without one, null as null", "[traces]") {
  CHECK(rewritten(R"({"seq":1,"kind":"note"})") == "{\"seq\":1,\"kind\":\"note\"}\n");
  CHECK(rewritten(R"({"seq":1,"phase":null,"kind":"note"})") ==
        "{\"seq\":1,\"phase\":null,\"kind\":\"note\"}\n");
}

TEST_CASE("an unknown kind is written with all that it had", "[traces]") {
  const std::string line = R"({"seq":1,"rank":2,"kind":"tele\tpathy","slot":"x","depth":3})"
                           "\n";
  CHECK(rewritten(line) == line);
}

TEST_CASE("each trace of others reads back equal to its JSON", "[traces]") {
  for (const std::string& path : some_traces_of_others()) {
    CAPTURE(path);
    std::istringstream original(unpacked_bytes(path));
    std::istringstream written(json_lines(read_trace(path)));
    std::string line;
    std::string ours;
    bool equal = true;
    while (equal && std::getline(original, line)) {
      equal =
          std::getline(written, ours) && nlohmann::json::parse(line) == nlohmann::json::parse(ours);
      if (!equal) CHECK(line == ours);
    }
    CHECK_FALSE(std::getline(written, ours));
  }
}

TEST_CASE("what we wrote reads back equal, and is written again byte for byte", "[traces]") {
  for (const std::string& path : some_traces_of_others()) {
    CAPTURE(path);
    const Trace trace = read_trace(path);
    const std::string written = json_lines(trace);
    const Trace again = trace_in(written);
    CHECK(first_difference(again, trace) == std::nullopt);
    CHECK((json_lines(again) == written));
  }
}

TEST_CASE("a trace is written to a file, gzipped where the name says so", "[traces]") {
  const TemporaryFolder folder;
  const Trace trace = trace_in(with_header(a_pack));
  write_trace(trace, folder / "a.jsonl");
  CHECK(bytes_of(folder / "a.jsonl") == json_lines(trace));
  write_trace(trace, folder / "a.jsonl.gz");
  CHECK(bytes_of(folder / "a.jsonl.gz").starts_with("\x1f\x8b"));
  CHECK(unpacked_bytes(folder / "a.jsonl.gz") == json_lines(trace));
  CHECK(folder.entries() == 2);
}

TEST_CASE("equal traces give equal bytes, gzipped too, whatever the file is called", "[traces]") {
  const TemporaryFolder folder;
  write_trace(trace_in(with_header(a_pack)), folder / "a.gz");
  write_trace(trace_in(with_header(a_pack)), folder / "another.gz");
  CHECK(bytes_of(folder / "a.gz") == bytes_of(folder / "another.gz"));
}

TEST_CASE("a trace of many blocks is written whole", "[traces]") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 1; i < 30000; ++i) {
    lines += R"({"seq":)" + std::to_string(i) + R"(,"kind":"note","msg":")" +
             std::string(static_cast<std::size_t>(i % 90), 'x') + "\"}\n";
  }
  const std::string text = with_header(lines);
  for (const char* name : {"long.jsonl", "long.jsonl.gz"}) {
    write_trace(trace_in(text), folder / name);
    CHECK((unpacked_bytes(folder / name) == text));
  }
}

TEST_CASE("a file appears whole or not at all", "[traces]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "before";
  {
    OutputFile file(folder / "a");
    file.write("half");
    CHECK(bytes_of(folder / "a") == "before");
    CHECK(folder.entries() == 2);
  }
  CHECK(bytes_of(folder / "a") == "before");
  CHECK(folder.entries() == 1);
  OutputFile file(folder / "a");
  file.write("whole");
  file.commit();
  CHECK(bytes_of(folder / "a") == "whole");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a place that cannot be written to is named, and nothing stays there", "[traces]") {
  const TemporaryFolder folder;
  const Trace trace = trace_in(with_header(""));
  const std::string place = "; expected a place that can be written to";
  CHECK_THROWS_WITH(write_trace(trace, folder / "none/a"),
                    folder / "none/a: cannot be written: No such file or directory" + place);
  fs::create_directory(folder / "taken");
  CHECK_THROWS_WITH(write_trace(trace, folder / "taken"),
                    folder / "taken: cannot be written: Is a directory" + place);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a device is written to, not replaced", "[traces]") {
  write_trace(trace_in(with_header("")), "/dev/null");
  CHECK(fs::is_character_file("/dev/null"));
}

}  // namespace remat
