#include "properties/invariants/expectations.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace remat;

namespace {

TraceHeader expecting(const std::string& json) {
  TraceHeader header;
  header.expect = json;
  return header;
}

/// What each reader of the header says about `json`, joined: one of them at most complains.
std::string complaint_about(const std::string& json) {
  try {
    const TraceHeader header = expecting(json);
    expected_gradients(header);
    expected_op_counts(header);
    expected_peak_bytes(header);
    expected_resident_bytes(header);
  } catch (const HeaderError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a header that expects nothing expects nothing", "[invariants]") {
  const TraceHeader header;
  CHECK(expected_gradients(header).empty());
  CHECK(expected_op_counts(header).empty());
  CHECK_FALSE(expected_peak_bytes(header).has_value());
  CHECK_FALSE(expected_resident_bytes(header).has_value());
  CHECK(
      complaint_about(R"({"gradients":null,"op_counts":null,"peak_bytes":null,"loss":3})").empty());
}

TEST_CASE("expected gradients are values by parameter, a list without any included",
          "[invariants]") {
  const auto gradients =
      expected_gradients(expecting(R"({"gradients":{"w":["g", [1, 2], 1.5],"u":[]}})"));
  CHECK(gradients == std::map<std::string, std::vector<std::string>>{
                         {"u", {}}, {"w", {"\"g\"", "[1,2]", "1.5"}}});
}

TEST_CASE("expected counts are by name, or by name and phase", "[invariants]") {
  const auto counts = expected_op_counts(expecting(
      R"({"op_counts":{"mm:replay":1,"mm":2,"c10d::all:reduce":3,"x:backward_input":0}})"));
  REQUIRE(counts.size() == 4);
  CHECK(counts[0].name == "c10d::all:reduce");  // `reduce` is no phase
  CHECK(counts[0].phase == Phase::none);
  CHECK(counts[0].count == 3);
  CHECK(counts[1].name == "mm");
  CHECK(counts[1].phase == Phase::none);
  CHECK(counts[2].name == "mm");
  CHECK(counts[2].phase == Phase::replay);
  CHECK(counts[3].name == "x");
  CHECK(counts[3].phase == Phase::backward_input);
  CHECK(counts[3].count == 0);
}

TEST_CASE("expected bytes are integers", "[invariants]") {
  CHECK(expected_peak_bytes(expecting(R"({"peak_bytes":0})")) == 0);
  CHECK(expected_resident_bytes(expecting(R"({"resident_bytes":1099511627776})")) == 1099511627776);
}

TEST_CASE("an expectation of another form is named with what was expected", "[invariants]") {
  struct Row {
    std::string json, place, expected;
  };
  const std::vector<Row> rows = {
      {"[]", "", "an object"},
      {R"({"gradients":[]})", "/gradients", "an object {parameter: [values]}"},
      {R"({"gradients":{"w":"g"}})", "/gradients/w", "a list of values"},
      {R"({"op_counts":3})", "/op_counts", "an object {name or name:phase: count}"},
      {R"({"op_counts":{"mm":-1}})", "/op_counts/mm", "an integer of at least 0"},
      {R"({"op_counts":{"mm":1.0}})", "/op_counts/mm", "an integer of at least 0"},
      {R"({"op_counts":{"mm":"2"}})", "/op_counts/mm", "an integer of at least 0"},
      {R"({"peak_bytes":-1})", "/peak_bytes", "a number of bytes, an integer of at least 0"},
      {R"({"resident_bytes":"8"})", "/resident_bytes",
       "a number of bytes, an integer of at least 0"},
  };
  for (const Row& row : rows) {
    CHECK(complaint_about(row.json) == "the header's expectation is of another form (at /expect" +
                                           row.place + "); expected " + row.expected);
  }
}
