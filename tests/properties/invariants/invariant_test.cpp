#include "properties/invariants/invariant.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

TEST_CASE("Report keeps a finding with its events in order, each once", "[invariants]") {
  Report report;
  report.found("op_counts", 7, "why", {7, 3, 7, 5});
  CHECK(report.findings() == Findings{{"op_counts", 7, "why", {3, 5, 7}}});
}

TEST_CASE("Report knows what was found since an event, by anybody or by one invariant",
          "[invariants]") {
  Report report;
  CHECK_FALSE(report.found_since(0));
  CHECK_FALSE(report.found_since("op_counts", 0));
  report.found("op_counts", 7, "why", {7});
  report.found("rng_position", 5, "why", {5});
  CHECK(report.found_since(7));
  CHECK_FALSE(report.found_since(8));
  CHECK(report.found_since("op_counts", 7));
  CHECK_FALSE(report.found_since("op_counts", 8));
  CHECK(report.found_since("rng_position", 5));
  CHECK_FALSE(report.found_since("rng_position", 6));
  CHECK_FALSE(report.found_since("stream_order", 0));
}

TEST_CASE("Report lists what could not be looked at as it is told", "[invariants]") {
  Report report;
  report.not_checked("op_counts", "a step_end event");
  report.not_checked("op_counts", "more");
  CHECK(report.unchecked() ==
        std::vector<NotChecked>{{"op_counts", "a step_end event"}, {"op_counts", "more"}});
}

TEST_CASE("Report keeps the first findings of each invariant, however many another one has",
          "[invariants]") {
  Report report;
  for (std::int64_t seq = 1; seq <= 10002; ++seq)
    report.found("op_counts", seq, "too many", {seq});
  report.found("rng_position", 20000, "elsewhere", {20000});
  CHECK(report.findings().size() == 10001);
  CHECK(report.findings().back().invariant == "rng_position");
  CHECK(report.n_left_out("op_counts") == 2);
  CHECK(report.n_left_out("rng_position") == 0);
  CHECK(report.found_since("op_counts", 10002));
  CHECK_FALSE(report.found_since("op_counts", 10003));
}
