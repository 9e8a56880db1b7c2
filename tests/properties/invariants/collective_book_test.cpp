#include "properties/invariants/collective_book.hpp"

#include <catch2/catch.hpp>

using namespace remat;

namespace {

/// `rank` issues the collective with this name at this event.
CollectiveCall call_of(std::int64_t rank, std::uint32_t name, std::int64_t seq) {
  return {NameId(name), std::nullopt, std::nullopt, rank, seq};
}

}  // namespace

TEST_CASE("CollectiveGroup compares a rank's call with the first rank's of that number",
          "[invariants]") {
  CollectiveGroup group;
  CHECK_FALSE(group.issue(call_of(0, 1, 10)).has_value());
  CHECK_FALSE(group.issue(call_of(0, 2, 11)).has_value());
  CHECK_FALSE(group.issue(call_of(1, 1, 12)).has_value());
  const auto first = group.issue(call_of(1, 3, 13));
  REQUIRE(first.has_value());
  CHECK(first->seq == 11);
  CHECK(first->rank == 0);
  CHECK(group.is_mismatched());
  SECTION("and compares no more once two have disagreed") {
    CHECK_FALSE(group.issue(call_of(2, 9, 14)).has_value());
    CHECK(group.issued().at(2) == 1);
  }
}

TEST_CASE("CollectiveGroup says how many calls each rank has issued", "[invariants]") {
  CollectiveGroup group;
  group.issue(call_of(3, 1, 10));
  group.issue(call_of(3, 1, 11));
  group.issue(call_of(1, 1, 12));
  CHECK(group.issued() == std::map<std::int64_t, std::int64_t>{{1, 1}, {3, 2}});
}

TEST_CASE("CollectiveGroup knows its calls by number", "[invariants]") {
  CollectiveGroup group;
  group.issue(call_of(0, 1, 10));
  REQUIRE(group.call(0).has_value());
  CHECK(group.call(0)->seq == 10);
  CHECK_FALSE(group.call(1).has_value());
  CHECK_FALSE(group.call(-1).has_value());
}

TEST_CASE("CollectiveGroup forgets the calls that all ranks have passed, and only those",
          "[invariants]") {
  CollectiveGroup group;
  constexpr std::int64_t n = 10000;
  for (std::int64_t i = 0; i < n; ++i) {
    CHECK_FALSE(group.issue(call_of(0, 1, i)).has_value());
    CHECK_FALSE(group.issue(call_of(1, 1, i)).has_value());
  }
  CHECK_FALSE(group.call(0).has_value());
  REQUIRE(group.call(n - 1).has_value());
  CHECK(group.call(n - 1)->seq == n - 1);
  CHECK(group.issue(call_of(0, 5, n)).has_value() == false);
  CHECK(group.issue(call_of(1, 6, n)).has_value());
}

TEST_CASE("collective calls agree in what both recorded", "[invariants]") {
  const CollectiveCall full{NameId(1), NameId(2), 8, 0, 1};
  CHECK(full.agrees_with({std::nullopt, std::nullopt, std::nullopt, 1, 2}));
  CHECK(full.agrees_with({NameId(1), NameId(2), 8, 1, 2}));
  CHECK_FALSE(full.agrees_with({NameId(3), NameId(2), 8, 1, 2}));
  CHECK_FALSE(full.agrees_with({NameId(1), NameId(3), 8, 1, 2}));
  CHECK_FALSE(full.agrees_with({NameId(1), NameId(2), 9, 1, 2}));
}
