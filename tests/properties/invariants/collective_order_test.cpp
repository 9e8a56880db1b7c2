#include "properties/invariants/collective_order.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

TEST_CASE("collective_order names the first call that differs from another rank's",
          "[invariants][collective_order]") {
  SECTION("in its name") {
    CHECK(
        checked(R"(
      {"kind":"collective","rank":0,"phase":"forward","group":"dp","name":"all_gather","tag":"fwd.A","n":8}
      {"kind":"collective","rank":1,"phase":"forward","group":"dp","name":"all_gather","tag":"fwd.A","n":8}
      {"kind":"unit_begin","rank":0,"phase":"replay","unit":"A","inv":0,"microbatch":3,"exec":"replay","gid":["session","g"]}
      {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"reduce_scatter","tag":"grad.A","n":8}
      {"kind":"collective","rank":0,"phase":"replay","group":"dp","name":"all_gather","tag":"replay.A","n":8}
    )")
            .findings ==
        Findings{{"collective_order",
                  5,
                  "call 2 of group dp is all_gather 'replay.A' of 8 in the replay of A for session "
                  "g on rank 0, but rank 1 issued reduce_scatter 'grad.A' of 8 as that call, at "
                  "event 4; expected the same collectives in the same order on every rank",
                  {4, 5}}});
  }
  SECTION("in its tag") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"phase":"forward","microbatch":0,"group":"dp","name":"all_reduce","tag":"A mb0"}
      {"kind":"collective","rank":1,"phase":"forward","microbatch":1,"group":"dp","name":"all_reduce","tag":"A mb1"}
    )")
              .findings ==
          Findings{{"collective_order",
                    2,
                    "call 1 of group dp is all_reduce 'A mb1' in forward of micro-batch 1 on rank "
                    "1, but rank 0 issued all_reduce 'A mb0' as that call, at event 1; expected "
                    "the same collectives in the same order on every rank",
                    {1, 2}}});
  }
  SECTION("in its size") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"phase":"forward","group":"dp","name":"all_reduce","n":8}
      {"kind":"collective","rank":1,"phase":"forward","group":"dp","name":"all_reduce","n":16}
    )")
              .findings ==
          Findings{{"collective_order",
                    2,
                    "call 1 of group dp is all_reduce of 16 in forward on rank 1, but rank 0 "
                    "issued all_reduce of 8 as that call, at event 1; expected the same "
                    "collectives in the same order on every rank",
                    {1, 2}}});
  }
  SECTION("in the order of two, told once") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"phase":"backward","group":"dp","name":"all_reduce","tag":"w1"}
      {"kind":"collective","rank":0,"phase":"backward","group":"dp","name":"all_reduce","tag":"w2"}
      {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"all_reduce","tag":"w2"}
      {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"all_reduce","tag":"w1"}
    )")
              .findings ==
          Findings{{"collective_order",
                    3,
                    "call 1 of group dp is all_reduce 'w2' in backward on rank 1, but rank 0 "
                    "issued all_reduce 'w1' as that call, at event 1; expected the same "
                    "collectives in the same order on every rank",
                    {1, 3}}});
  }
  SECTION("also in a group whose name was not recorded") {
    CHECK(checked(R"(
      {"kind":"collective","rank":2,"name":"barrier"}
      {"kind":"collective","rank":5,"name":"all_reduce"}
    )")
              .findings ==
          Findings{{"collective_order",
                    2,
                    "call 1 of the group without a name is all_reduce outside any phase on rank 5, "
                    "but rank 2 issued barrier as that call, at event 1; expected the same "
                    "collectives in the same order on every rank",
                    {1, 2}}});
  }
}

TEST_CASE("collective_order lets ranks and groups interleave as they like",
          "[invariants][collective_order]") {
  CHECK(checked(R"(
    {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"a"}
    {"kind":"collective","rank":0,"group":"tp","name":"all_reduce","tag":"b"}
    {"kind":"collective","rank":0,"group":"dp","name":"reduce_scatter","tag":"c"}
    {"kind":"collective","rank":1,"group":"tp","name":"all_reduce","tag":"b"}
    {"kind":"collective","rank":1,"group":"dp","name":"all_gather","tag":"a"}
    {"kind":"collective","rank":1,"group":"dp","name":"reduce_scatter","tag":"c"}
  )")
            .findings.empty());
}

TEST_CASE("collective_order compares what both ranks recorded", "[invariants][collective_order]") {
  CHECK(checked(R"(
    {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"a","n":8}
    {"kind":"collective","rank":1,"group":"dp","name":"all_gather"}
    {"kind":"collective","rank":2,"group":"dp"}
  )")
            .findings.empty());
}

TEST_CASE("collective_order leaves unequal numbers to no_deadlock",
          "[invariants][collective_order]") {
  const Verdict verdict = checked(R"(
    {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"a"}
    {"kind":"collective","rank":1,"group":"dp","name":"all_gather","tag":"a"}
    {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"b"}
    {"kind":"step_end"}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "no_deadlock");
}

TEST_CASE("collective_order says that it needs two ranks", "[invariants][collective_order]") {
  CHECK(needs(checked(R"({"kind":"collective","rank":0,"group":"dp","name":"all_gather"})"),
              "collective_order") == "collective events of two or more ranks");
  CHECK(needs(checked(R"(
    {"kind":"collective","rank":0,"group":"dp","name":"all_gather"}
    {"kind":"collective","rank":1,"group":"dp","name":"all_gather"}
  )"),
              "collective_order")
            .empty());
}
