#include "properties/invariants/peak_within_bound.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

std::string expecting(const std::string& bounds) {
  return R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{)" + bounds + "}}\n";
}
/// 16 bytes at any moment, 8 at the end of forward.
const std::string bounded = expecting(R"("peak_bytes":16,"resident_bytes":8)");

/// Brings a storage of 8 bytes to life.
std::string made(int storage) {
  return R"({"kind":"storage_alloc","phase":"forward","unit":"A","microbatch":0,"storage":)" +
         std::to_string(storage) + ",\"bytes\":8}\n";
}
/// Brings one to life that claims all the bytes there can be.
std::string huge(int storage) {
  return R"({"kind":"storage_alloc","phase":"forward","storage":)" + std::to_string(storage) +
         ",\"bytes\":9223372036854775807}\n";
}
std::string released(int storage) {
  return R"({"kind":"storage_free","phase":"backward","storage":)" + std::to_string(storage) +
         "}\n";
}
const std::string forward_ends = R"(
  {"kind":"phase_end","phase":"forward","microbatch":0}
)";
const std::string closing = R"(
  {"kind":"step_end"}
)";

/// Alone: what outlives the step on purpose here is no_leak_at_step_end's business.
Findings found_in(const std::string& trace) {
  Findings findings = checked(trace).findings;
  std::erase_if(findings,
                [](const Finding& finding) { return finding.invariant == "no_leak_at_step_end"; });
  return findings;
}

}  // namespace

TEST_CASE("peak_within_bound names the birth that exceeds the bound",
          "[invariants][peak_within_bound]") {
  SECTION("an allocation") {
    CHECK(checked(bounded + made(1) + made(2) + made(3)).findings ==
          Findings{{"peak_within_bound",
                    3,
                    "24 bytes are alive in forward of A (micro-batch 0) once storage 3 (8 bytes) "
                    "is there; the bound is 16 bytes",
                    {3}}});
  }
  SECTION("an op's output") {
    CHECK(checked(bounded + made(1) + R"(
      {"kind":"op","phase":"backward","microbatch":2,"name":"mm","inputs":[],"outputs":[{"t":2,"s":2,"bytes":4},{"t":3,"s":3,"bytes":5,"name":"gx"}]}
    )")
              .findings == Findings{{"peak_within_bound",
                                     2,
                                     "17 bytes are alive in backward of micro-batch 2 once storage "
                                     "3 (5 bytes) is there; the bound is 16 bytes",
                                     {2}}});
  }
  SECTION("in a replay") {
    CHECK(checked(expecting(R"("peak_bytes":0)") + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":1,"exec":"replay","gid":["graph_task",4]}
      {"kind":"storage_alloc","phase":"replay","storage":1,"bytes":1,"name":"r"}
    )")
              .findings == Findings{{"peak_within_bound",
                                     2,
                                     "1 byte is alive in the replay of A for graph task 4 once "
                                     "storage 1 (1 byte) is there; the bound is 0 bytes",
                                     {2}}});
  }
}

TEST_CASE("peak_within_bound tells the peak once a step", "[invariants][peak_within_bound]") {
  const std::string step = made(1) + made(2) + made(3) + made(4) + released(1) + released(2) +
                           released(3) + released(4) + closing;
  CHECK(checked(bounded + step).findings.size() == 1);
  CHECK(checked(bounded + step + step).findings.size() == 2);
}

TEST_CASE("peak_within_bound names what is left after the last forward of a step",
          "[invariants][peak_within_bound]") {
  CHECK(checked(bounded + made(1) + made(2) + forward_ends + released(1) + released(2) + closing)
            .findings == Findings{{"peak_within_bound",
                                   3,
                                   "16 bytes are alive at the end of the step's last forward "
                                   "(micro-batch 0); the bound is 8 bytes",
                                   {3}}});
  SECTION("of the last only: a pipeline may hold more after an earlier one") {
    CHECK(checked(bounded + made(1) + made(2) + forward_ends + released(1) + forward_ends +
                  released(2) + closing)
              .findings.empty());
  }
  SECTION("not after a backward") {
    CHECK(checked(bounded + made(1) + forward_ends + made(2) +
                  R"({"kind":"phase_end","phase":"backward","microbatch":0})" + "\n" + released(1) +
                  released(2) + closing)
              .findings.empty());
  }
  SECTION("in every step, also in one that the trace does not end") {
    CHECK(found_in(bounded + made(1) + forward_ends + closing + made(2) + forward_ends).size() ==
          1);
  }
}

TEST_CASE("peak_within_bound counts what is alive and nobody outside owns",
          "[invariants][peak_within_bound]") {
  SECTION("what was released counts no more") {
    CHECK(checked(bounded + made(1) + made(2) + released(1) + made(3) + released(2) + made(4))
              .findings.empty());
  }
  SECTION("a view adds nothing") {
    CHECK(checked(bounded + made(1) + made(2) + R"(
      {"kind":"op","phase":"forward","name":"view","inputs":[],"outputs":[{"t":9,"s":2,"bytes":8}]}
    )")
              .findings.empty());
  }
  SECTION("roles that lie outside count nothing, from the birth on or later") {
    CHECK(checked(bounded + made(1) + made(2) + R"(
      {"kind":"storage_alloc","phase":"backward","storage":5,"bytes":99,"role":"grad"}
      {"kind":"role","phase":"forward","storage":2,"role":"input"}
    )" + made(3))
              .findings.empty());
  }
  SECTION("what was there before the trace began is the caller's") {
    CHECK(checked(bounded + made(1) + made(2) + R"(
      {"kind":"op","phase":"forward","name":"print","inputs":[9],"reads":[{"t":9,"s":9,"bytes":64}],"outputs":[]}
    )")
              .findings.empty());
  }
  SECTION("what no machine could hold is counted exactly, so nothing is left once it is gone") {
    const std::string step = huge(1) + huge(2) + huge(3) + released(1) + released(2) + released(3);
    CHECK(found_in(bounded + step + made(4) + made(5) + forward_ends) ==
          Findings{{"peak_within_bound",
                    1,
                    "9223372036854775807 bytes are alive in forward once storage 1 "
                    "(9223372036854775807 bytes) is there; the bound is 16 bytes",
                    {1}},
                   {"peak_within_bound",
                    9,
                    "16 bytes are alive at the end of the step's last forward (micro-batch 0); "
                    "the bound is 8 bytes",
                    {9}}});
  }
  SECTION("a bound that is met holds") {
    CHECK(checked(bounded + made(1) + made(2)).findings.empty());
  }
}

TEST_CASE("peak_within_bound tells what excluded regions keep from what a replay rederives",
          "[invariants][peak_within_bound]") {
  // Storage 2 is kept, storage 11 rederived; storage 1 is neither, and storage 3 one too many.
  CHECK(
      checked(
          expecting(R"("peak_bytes":48)") + excluded_forward + excluded_replay +
          R"({"kind":"op","phase":"backward","name":"mm","inputs":[],"outputs":[{"t":3,"s":3,"bytes":4}]})")
          .findings ==
      Findings{{"peak_within_bound",
                20,
                "52 bytes are alive in backward once storage 3 (4 bytes) is there; the bound is "
                "48 bytes; excluded regions hold 0 bytes kept by forward and 16 bytes rederived "
                "by replays",
                {20}}});
  CHECK(checked(expecting(R"("resident_bytes":16)") + excluded_forward +
                R"({"kind":"phase_end","phase":"forward"})")
            .findings ==
        Findings{{"peak_within_bound",
                  11,
                  "32 bytes are alive at the end of the step's last forward; the bound is 16 "
                  "bytes; excluded regions hold 16 bytes kept by forward and 0 bytes rederived by "
                  "replays",
                  {11}}});
}

TEST_CASE("peak_within_bound says what it lacks", "[invariants][peak_within_bound]") {
  CHECK(needs(checked(made(1)), "peak_within_bound") ==
        "expect.peak_bytes or expect.resident_bytes in the header");
  CHECK(needs(checked(bounded + made(1)), "peak_within_bound") ==
        "the end of a forward phase (phase_end): bytes resident after it");
  CHECK(needs(checked(expecting(R"("peak_bytes":16)") + made(1)), "peak_within_bound").empty());
  const Verdict verdict = checked(
      R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"peak_bytes":8},"not_recorded":["storage_free"]})"
      "\n" +
      made(1) + made(2));
  CHECK(verdict.findings.empty());
  CHECK(needs(verdict, "peak_within_bound") ==
        "storage_alloc and storage_free events, which the header says are not recorded");
}

TEST_CASE("peak_within_bound counts each rank's bytes apart", "[invariants][peak_within_bound]") {
  const auto made_on = [](int rank, int storage) {
    return R"({"kind":"storage_alloc","phase":"forward","rank":)" + std::to_string(rank) +
           R"(,"storage":)" + std::to_string(storage) + ",\"bytes\":8}\n";
  };
  const std::string both_end = R"(
    {"kind":"phase_end","phase":"forward","rank":0}
    {"kind":"phase_end","phase":"forward","rank":1}
    {"kind":"step_end","rank":0}
    {"kind":"step_end","rank":1}
  )";
  CHECK(found_in(bounded + made_on(0, 1) + made_on(1, 2) + both_end).empty());
  const Findings too_many =
      found_in(bounded + made_on(0, 1) + made_on(1, 2) + made_on(1, 3) + made_on(1, 4) + both_end);
  REQUIRE(too_many.size() == 2);
  CHECK(too_many[0].seq == 4);
  CHECK(too_many[1].message ==
        "24 bytes are alive at the end of the step's last forward on rank 1; the bound is 8 bytes");
}
