#include "properties/invariants/id_table.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace remat;

TEST_CASE("IdTable gives back what was set, for dense and for sparse ids", "[invariants]") {
  IdTable table;
  for (std::int64_t id = 0; id < 100; ++id)
    table.set(id, id * 3);
  table.set(INT64_MAX, 7);
  table.set(INT64_MIN, 8);
  table.set(-1, 9);
  for (std::int64_t id = 0; id < 100; ++id)
    CHECK(table.find(id) == id * 3);
  CHECK(table.find(INT64_MAX) == 7);
  CHECK(table.find(INT64_MIN) == 8);
  CHECK(table.find(-1) == 9);
}

TEST_CASE("IdTable knows nothing of ids that were not set, not even of their neighbours",
          "[invariants]") {
  IdTable table;
  CHECK_FALSE(table.find(5).has_value());
  table.set(5, 0);
  CHECK(table.find(5) == 0);
  CHECK_FALSE(table.find(4).has_value());
  CHECK_FALSE(table.find(6).has_value());
  CHECK_FALSE(table.find(5 + (1LL << 40)).has_value());
}

TEST_CASE("IdTable takes the last value that was set", "[invariants]") {
  IdTable table;
  table.set(5, 1);
  table.set(5, 2);
  CHECK(table.find(5) == 2);
}

TEST_CASE("IdTable holds values at any distance from their ids", "[invariants]") {
  IdTable table;
  constexpr std::int64_t far = (1LL << 31) - 2;  // the largest distance below that is kept near
  const std::int64_t values[] = {0,          1000 - far,     1000 - far - 1, 1000 - far - 2,
                                 1000 + far, 1000 + far + 2, INT64_MIN,      INT64_MAX};
  for (const std::int64_t value : values) {
    table.set(1000, value);
    CHECK(table.find(1000) == value);
  }
  table.set(INT64_MIN, INT64_MAX);
  CHECK(table.find(INT64_MIN) == INT64_MAX);
}
