#include "traces/json_schema.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/vocabulary.hpp"

namespace remat {
namespace {

/// Values of every type, right for some fields and wrong for others.
const std::vector<std::string> values = {
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "9223372036854775807",
    "9223372036854775808",
    R"("a")",
    "[]",
    "[1]",
    "[-1]",
    R"(["a"])",
    R"(["a",1])",
    R"(["a",-1])",
    R"(["a","b"])",
    R"(["a",18446744073709551615])",
    R"(["a",18446744073709551616])",
    R"(["a",1,2])",
    "[null]",
    "{}",
    R"({"t":1})",
    R"({"t":-1})",
    R"({"v":4294967295})",
    R"({"v":4294967296})",
    R"([{"s":1},{"shape":[1,-2],"stride":[],"value":[null],"odd":1.5}])",
    R"([{"s":null}])",
    R"([1,{"t":1}])",
};

/// Lines with each field of each kind, or of a tensor, set to each of the values.
std::vector<std::string> lines_of_all_fields() {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::string& tail) {
    for (const std::string& value : values) {
      std::string line = head;
      line += value;
      line += tail;
      lines.push_back(line);
    }
  };
  for (const KindRow& row : kind_rows()) {
    if (row.kind == Kind::header) continue;
    const std::string head = R"({"seq":1,"kind":")" + std::string(row.name) + "\",\"";
    for (const FieldRow& field : row.fields)
      add(head + std::string(name_of(field.field)) + "\":", "}");
    add(head + "odd\":", "}");
  }
  for (const FieldRow& field : context_fields()) {
    if (field.field == Field::seq || field.field == Field::kind) continue;
    for (const char* kind : {"note", "telepathy"}) {
      const std::string head = R"({"seq":1,"kind":")" + std::string(kind) + "\",\"";
      add(head + std::string(name_of(field.field)) + "\":", "}");
    }
  }
  for (const FieldRow& field : tensor_fields())
    add(R"({"seq":1,"kind":"pack","tensor":{")" + std::string(name_of(field.field)) + "\":", "}}");
  add(R"({"kind":"note","seq":)", "}");
  add(R"({"seq":1,"kind":)", "}");
  for (const char* phase : {"setup", "pretrigger", "none", "nowhere"})
    lines.push_back(R"({"seq":1,"kind":"note","phase":")" + std::string(phase) + "\"}");
  lines.insert(lines.end(), {"{}", R"({"seq":1})", R"({"kind":"note"})", "[]", "1", "\"a\""});
  return lines;
}

/// Headers, right and wrong: the first line of a trace.
std::vector<std::string> header_lines() {
  std::vector<std::string> lines;
  for (const std::string& value : values) {
    for (const char* field : {"seq", "format", "version", "config", "case", "not_recorded"}) {
      nlohmann::ordered_json header = {
          {"seq", 0}, {"kind", "header"}, {"format", "ckpt-trace"}, {"version", 1}};
      header.erase(field);
      lines.push_back(R"({")" + std::string(field) + "\":" + value + "," + header.dump().substr(1));
    }
  }
  lines.insert(lines.end(), {R"({"seq":0,"kind":"header"})",
                             R"({"seq":0,"kind":"header","format":"ckpt-trace"})",
                             R"({"seq":0,"kind":"header","version":1})"});
  return lines;
}

}  // namespace

TEST_CASE("the schema of a trace names each kind with its fields", "[traces]") {
  const auto schema = nlohmann::json::parse(trace_json_schema());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["required"] == nlohmann::json({"seq", "kind"}));
  REQUIRE(schema["allOf"].size() == kind_rows().size());
  for (std::size_t i = 0; i < kind_rows().size(); ++i) {
    const KindRow& row = kind_rows()[i];
    const auto& branch = schema["allOf"][i];
    CHECK(branch["if"]["properties"]["kind"]["const"] == std::string(row.name));
    for (const FieldRow& field : row.fields) {
      CAPTURE(row.name, name_of(field.field));
      CHECK(branch["then"]["properties"].contains(std::string(name_of(field.field))));
    }
  }
  const auto& header = schema["allOf"][0]["then"];
  CHECK(header["required"] == nlohmann::json({"format", "version"}));
  CHECK(header["properties"]["format"]["const"] == "ckpt-trace");
  CHECK(header["properties"]["version"]["const"] == 1);
}

TEST_CASE("the schema is the same text each time, and ends its last line", "[traces]") {
  CHECK(trace_json_schema() == trace_json_schema());
  CHECK(trace_json_schema().ends_with("}\n"));
}

// Not a test: trace_schema_test.py asks the schema about the same lines.
TEST_CASE("what the reader says of many lines is written to $REMATSIM_SAMPLES", "[.samples]") {
  const char* folder = std::getenv("REMATSIM_SAMPLES");
  REQUIRE(folder != nullptr);
  std::ofstream out(std::string(folder) + "/verdicts.json");
  nlohmann::json verdicts = nlohmann::json::array();
  for (const std::string& line : lines_of_all_fields())
    verdicts.push_back({{"line", line}, {"fault", fault_in(with_header(line))}});
  for (const std::string& line : header_lines())
    verdicts.push_back({{"line", line}, {"fault", fault_in(line)}});
  out << verdicts.dump();
}

}  // namespace remat
