#include "properties/random_trace.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "model/random_bits.hpp"
#include "tests/properties/arbitrary_tape.hpp"
#include "tests/traces/trace_difference.hpp"
#include "tests/traces/trace_text.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

/// What there is to see of a trace: each kind, and each cell of each field's type.
void count_parts(const Trace& trace, std::map<std::string, int>& parts) {
  for (std::size_t i = 0; i < trace.size(); ++i) {
    ++parts[std::string(name_of(trace[i].kind()))];
    for (const ShapeField& field : trace[i].shape().fields) {
      const bool known = field.key < field_count;
      const auto type = known ? field_type(trace[i].kind(), static_cast<Field>(field.key))
                              : std::optional<FieldType>{};
      ++parts[(type ? std::string(expectation(*type)) : "unknown") + " in cell " +
              std::to_string(static_cast<int>(field.cell))];
    }
  }
}

std::optional<std::string> difference_of_reading(const std::string& bytes, const Trace& trace) {
  if (const std::string fault = fault_in(bytes); !fault.empty()) return fault;
  return first_difference(trace_in(bytes), trace);
}

}  // namespace

TEST_CASE("a tape gives the same choices again when it is played again", "[properties]") {
  ChoiceTape tape = ChoiceTape::from_seed(7);
  const std::uint64_t first = tape.choose(10);
  const std::uint64_t second = tape.bits();
  CHECK(first < 10);
  CHECK(second == random_bits(7, 0, 1));
  ChoiceTape again(tape.chosen());
  CHECK(again.choose(10) == first);
  CHECK(again.bits() == second);
  CHECK(again.choose(10) == 0);
  CHECK(again.bits() == 0);
  CHECK(again.chosen().size() == 4);
}

TEST_CASE("a choice among one is no choice, but has its place on the tape", "[properties]") {
  ChoiceTape tape({5, 6});
  CHECK(tape.choose(1) == 0);
  CHECK(tape.choose(4) == 2);
}

TEST_CASE("an empty tape gives a trace of a header alone", "[properties]") {
  ChoiceTape tape(std::vector<std::uint64_t>{});
  CHECK(json_lines(random_trace(tape)) ==
        "{\"seq\":0,\"kind\":\"header\",\"format\":\"ckpt-trace\",\"version\":1}\n");
}

TEST_CASE("one tape gives one trace, recorded or from its seed", "[properties]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ChoiceTape tape = ChoiceTape::from_seed(seed);
    const Trace trace = random_trace(tape);
    ChoiceTape again(tape.chosen());
    CHECK(first_difference(random_trace(again), trace) == std::nullopt);
  }
}

TEST_CASE("random traces are of every kind and have values of every type", "[properties]") {
  std::map<std::string, int> parts;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    ChoiceTape tape = ChoiceTape::from_seed(seed);
    count_parts(random_trace(tape), parts);
  }
  for (const KindRow& row : kind_rows()) {
    CAPTURE(row.name);
    CHECK(parts[std::string(row.name)] > 0);
  }
  CHECK(parts["unknown"] > 0);
  const auto seen = [&](FieldType type, Cell cell) {
    return parts[std::string(expectation(type)) + " in cell " +
                 std::to_string(static_cast<int>(cell))] > 0;
  };
  CHECK(seen(FieldType::integer, Cell::int32));
  CHECK(seen(FieldType::integer, Cell::int64));
  CHECK(seen(FieldType::count, Cell::int64));
  CHECK(seen(FieldType::count, Cell::null));
  CHECK(seen(FieldType::boolean, Cell::yes));
  CHECK(seen(FieldType::boolean, Cell::no));
  CHECK(seen(FieldType::name, Cell::name));
  CHECK(seen(FieldType::text, Cell::text));
  CHECK(seen(FieldType::integers, Cell::list32));
  CHECK(seen(FieldType::integers, Cell::list64));
  CHECK(seen(FieldType::tensor, Cell::tensor));
  CHECK(seen(FieldType::tensors, Cell::tensors));
  CHECK(seen(FieldType::ids_or_tensors, Cell::list32));
  CHECK(seen(FieldType::ids_or_tensors, Cell::tensors));
  CHECK(seen(FieldType::session, Cell::session));
  CHECK(seen(FieldType::node, Cell::node));
  CHECK(seen(FieldType::node, Cell::node_name));
  CHECK(seen(FieldType::json, Cell::text));
}

TEST_CASE("what is written of any trace reads back equal", "[properties]") {
  rc::prop("and is written again byte for byte", [] {
    ChoiceTape tape(*arbitrary_tape(2000));
    const Trace trace = random_trace(tape);
    const std::string written = json_lines(trace);
    if (const auto wrong = difference_of_reading(written, trace)) RC_FAIL(*wrong + "\n" + written);
    if (const auto wrong = difference_of_reading(gzipped(written), trace)) RC_FAIL(*wrong);
    RC_ASSERT(json_lines(trace_in(written)) == written);
  });
}

// Not a test: what trace_schema_test.py holds against the JSON Schema.
TEST_CASE("random traces are written to the folder in $REMATSIM_SAMPLES", "[.samples]") {
  const char* folder = std::getenv("REMATSIM_SAMPLES");
  REQUIRE(folder != nullptr);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    ChoiceTape tape = ChoiceTape::from_seed(seed);
    const std::string name = std::to_string(seed) + (seed % 2 == 0 ? ".jsonl" : ".jsonl.gz");
    write_trace(random_trace(tape), std::string(folder) + "/" + name);
  }
}

}  // namespace remat
