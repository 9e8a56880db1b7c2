#include "properties/invariants/release_log.hpp"

#include <catch2/catch.hpp>

using namespace remat;

TEST_CASE("ReleaseLog tells what was released and when, until it lives again", "[invariants]") {
  ReleaseLog log;
  CHECK_FALSE(log.find(1).has_value());
  log.add(1, 5);
  REQUIRE(log.find(1).has_value());
  CHECK(log.find(1)->seq == 5);
  CHECK(log.find(1)->is_exact);
  log.remove(1);
  CHECK_FALSE(log.contains(1));
  CHECK_FALSE(log.find(1).has_value());
}

TEST_CASE("ReleaseLog bounds the event of what was released long ago", "[invariants]") {
  ReleaseLog log;
  log.add(1, 5);
  log.add(2, 6);
  log.add(2, 7);  // a second time: the entry from before is stale
  const auto n = static_cast<std::int64_t>(ReleaseLog::n_remembered);
  CHECK(log.add(3, 8) == std::nullopt);
  std::int64_t n_forgotten = 0;
  for (std::int64_t id = 4; id < n + 1; ++id)
    n_forgotten += log.add(id, 10 + id).has_value() ? 1 : 0;
  CHECK(n_forgotten == 1);  // the log is full from n entries on
  CHECK(log.contains(1));
  CHECK(log.find(1)->seq == 6);
  CHECK_FALSE(log.find(1)->is_exact);
  CHECK(log.add(n + 1, 2 * n) == std::nullopt);
  CHECK(log.find(2)->is_exact);
  CHECK(log.add(n + 2, 2 * n) == 2);
  CHECK_FALSE(log.find(2)->is_exact);
}
