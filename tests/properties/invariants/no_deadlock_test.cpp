#include "properties/invariants/no_deadlock.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

const std::string both_gather = R"(
  {"kind":"collective","rank":0,"phase":"forward","group":"dp","name":"all_gather","tag":"fwd.V","n":8}
  {"kind":"collective","rank":1,"phase":"forward","group":"dp","name":"all_gather","tag":"fwd.V","n":8}
)";
const std::string rank_0_gathers = R"(
  {"kind":"collective","rank":0,"phase":"replay","group":"dp","name":"all_gather","tag":"replay.V","n":8}
)";
const std::string closing = R"(
  {"kind":"step_end"}
)";
const std::string end_0 = R"(
  {"kind":"step_end","rank":0}
)";
const std::string end_1 = R"(
  {"kind":"step_end","rank":1}
)";

}  // namespace

TEST_CASE("no_deadlock names a collective that another rank never joins",
          "[invariants][no_deadlock]") {
  SECTION("at the end of the step of all ranks") {
    CHECK(checked(both_gather + rank_0_gathers + closing).findings ==
          Findings{{"no_deadlock",
                    4,
                    "rank 0 waits in call 2 of group dp (all_gather 'replay.V'), but rank 1 ends "
                    "the step after 1 call: nobody will join it",
                    {3, 4}}});
  }
  SECTION("at the end of the rank that ends first") {
    CHECK(checked(both_gather + end_1 + rank_0_gathers + end_0).findings ==
          Findings{{"no_deadlock",
                    3,
                    "rank 0 waits in call 2 of group dp (all_gather 'replay.V'), but rank 1 ends "
                    "the step after 1 call: nobody will join it",
                    {3, 4}}});
  }
  SECTION("by a rank that never ends its step") {
    CHECK(checked(both_gather + end_1 + rank_0_gathers).findings ==
          Findings{{"no_deadlock",
                    3,
                    "rank 0 waits in call 2 of group dp (all_gather 'replay.V'), but rank 1 ends "
                    "the step after 1 call: nobody will join it",
                    {3, 4}}});
  }
  SECTION("told once for a group") {
    CHECK(checked(both_gather + rank_0_gathers + closing + both_gather + closing).findings.size() ==
          1);
  }
  SECTION("of which little was recorded") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0}
      {"kind":"collective","rank":1}
      {"kind":"collective","rank":1}
    )" + closing)
              .findings ==
          Findings{{"no_deadlock",
                    4,
                    "rank 1 waits in call 2 of the group without a name (a collective), but rank 0 "
                    "ends the step after 1 call: nobody will join it",
                    {3, 4}}});
  }
}

TEST_CASE("no_deadlock lets ranks end their steps one after the other",
          "[invariants][no_deadlock]") {
  CHECK(checked(both_gather + end_1 + end_0 + both_gather + end_0 + end_1).findings.empty());
  SECTION("one is a step ahead") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"s0"}
      {"kind":"step_end","rank":0}
      {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"s1"}
      {"kind":"collective","rank":1,"group":"dp","name":"all_gather","tag":"s0"}
      {"kind":"step_end","rank":1}
      {"kind":"step_end","rank":0}
      {"kind":"collective","rank":1,"group":"dp","name":"all_gather","tag":"s1"}
      {"kind":"step_end","rank":1}
    )")
              .findings.empty());
  }
  SECTION("a rank outside the group owes it nothing") {
    CHECK(
        checked(both_gather + end_0 + end_1 + R"({"kind":"step_end","rank":2})").findings.empty());
  }
}

TEST_CASE("no_deadlock does not count where the calls themselves differ",
          "[invariants][no_deadlock]") {
  const Verdict verdict = checked(both_gather + rank_0_gathers + R"(
    {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"reduce_scatter","tag":"grad.V","n":8}
  )" + rank_0_gathers + closing);
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "collective_order");
  SECTION("at the end of each rank, and of ranks that never end") {
    const std::string parted = both_gather + rank_0_gathers + R"(
      {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"reduce_scatter","tag":"grad.V","n":8}
    )" + rank_0_gathers;
    CHECK(checked(parted + end_0 + end_1).findings == verdict.findings);
    CHECK(checked(parted + end_1).findings == verdict.findings);
  }
  SECTION("and looks for no circle there") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"group":"dp","name":"all_gather","tag":"a"}
      {"kind":"collective","rank":0,"group":"tp","name":"all_reduce"}
      {"kind":"collective","rank":1,"group":"tp","name":"all_reduce"}
      {"kind":"collective","rank":1,"group":"dp","name":"all_gather","tag":"b"}
    )" + closing)
              .findings.size() == 1);
  }
}

TEST_CASE("no_deadlock names a message that nobody sends", "[invariants][no_deadlock]") {
  SECTION("none of that tag") {
    CHECK(checked(R"(
      {"kind":"send","rank":0,"phase":"forward","peer":1,"tag":"act mb0","bytes":8}
      {"kind":"recv","rank":1,"phase":"forward","peer":0,"tag":"act mb0","bytes":8}
      {"kind":"recv","rank":1,"phase":"forward","peer":0,"tag":"act mb1","bytes":8}
    )" + closing)
              .findings == Findings{{"no_deadlock",
                                     4,
                                     "rank 1 waits since event 3 for a message 'act mb1' from rank "
                                     "0, which sends 0 where rank 1 receives 1",
                                     {3, 4}}});
  }
  SECTION("one too few") {
    CHECK(checked(R"(
      {"kind":"recv","rank":1,"phase":"forward","peer":0}
      {"kind":"recv","rank":1,"phase":"forward","peer":0}
      {"kind":"send","rank":0,"phase":"forward","peer":1}
    )" + closing)
              .findings == Findings{{"no_deadlock",
                                     4,
                                     "rank 1 waits since event 2 for a message from rank 0, which "
                                     "sends 1 where rank 1 receives 2",
                                     {2, 4}}});
  }
}

TEST_CASE("no_deadlock lets messages be sent and received in any order",
          "[invariants][no_deadlock]") {
  SECTION("the receive may be recorded first") {
    CHECK(checked(R"(
      {"kind":"recv","rank":1,"phase":"forward","peer":0,"tag":"a"}
      {"kind":"send","rank":0,"phase":"forward","peer":1,"tag":"b"}
      {"kind":"send","rank":0,"phase":"forward","peer":1,"tag":"a"}
      {"kind":"recv","rank":1,"phase":"forward","peer":0,"tag":"b"}
    )" + closing)
              .findings.empty());
  }
  SECTION("a message that nobody receives holds nobody up") {
    CHECK(checked(R"(
      {"kind":"send","rank":0,"phase":"forward","peer":1,"tag":"a"}
      {"kind":"recv","rank":1,"phase":"forward","peer":2,"tag":"from a rank that was not recorded"}
      {"kind":"recv","rank":1,"phase":"forward","tag":"of whom was not recorded"}
    )" + closing)
              .findings.empty());
  }
}

TEST_CASE("no_deadlock names ranks that wait for each other in a circle",
          "[invariants][no_deadlock]") {
  SECTION("in the collectives of two groups") {
    CHECK(checked(R"(
      {"kind":"collective","rank":0,"phase":"backward","group":"dp","name":"reduce_scatter"}
      {"kind":"collective","rank":0,"phase":"backward","group":"tp","name":"all_reduce"}
      {"kind":"collective","rank":1,"phase":"backward","group":"tp","name":"all_reduce"}
      {"kind":"collective","rank":1,"phase":"backward","group":"dp","name":"reduce_scatter"}
    )" + closing)
              .findings == Findings{{"no_deadlock",
                                     5,
                                     "rank 0 waits in reduce_scatter (event 1) for rank 1, rank 1 "
                                     "waits in all_reduce (event 3) for rank 0: none of them can "
                                     "go on; expected an order in which all calls are answered",
                                     {1, 3, 5}}});
  }
  SECTION("in a receive and a collective") {
    CHECK(checked(R"(
      {"kind":"recv","rank":0,"phase":"forward","peer":1}
      {"kind":"collective","rank":0,"phase":"forward","group":"dp","name":"all_gather"}
      {"kind":"collective","rank":1,"phase":"forward","group":"dp","name":"all_gather"}
      {"kind":"send","rank":1,"phase":"forward","peer":0}
    )" + closing)
              .findings == Findings{{"no_deadlock",
                                     5,
                                     "rank 0 waits in a receive (event 1) for rank 1, rank 1 waits "
                                     "in all_gather (event 3) for rank 0: none of them can go on; "
                                     "expected an order in which all calls are answered",
                                     {1, 3, 5}}});
  }
  SECTION("not where one of them goes on") {
    CHECK(checked(R"(
      {"kind":"send","rank":1,"phase":"forward","peer":0}
      {"kind":"recv","rank":0,"phase":"forward","peer":1}
      {"kind":"collective","rank":0,"phase":"forward","group":"dp","name":"all_gather"}
      {"kind":"collective","rank":1,"phase":"forward","group":"dp","name":"all_gather"}
    )" + closing)
              .findings.empty());
  }
}

TEST_CASE("no_deadlock says what it lacks", "[invariants][no_deadlock]") {
  CHECK(needs(checked(closing), "no_deadlock") ==
        "collective, send or recv events of two or more ranks");
  CHECK(needs(checked(both_gather), "no_deadlock") ==
        "a step_end event: who still waits shows there");
  CHECK(needs(checked(both_gather + closing), "no_deadlock").empty());
  // Without an end nobody can say that nothing more comes.
  CHECK(checked(R"(
    {"kind":"recv","rank":1,"peer":0}
    {"kind":"send","rank":0,"peer":2}
  )")
            .findings.empty());
}

TEST_CASE("no_deadlock finds a circle where each rank ends the step by itself",
          "[invariants][no_deadlock]") {
  const Verdict verdict = checked(R"(
    {"kind":"recv","rank":0,"peer":1}
    {"kind":"send","rank":0,"peer":1}
    {"kind":"recv","rank":1,"peer":0}
    {"kind":"send","rank":1,"peer":0}
    {"kind":"step_end","rank":0}
    {"kind":"step_end","rank":1}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].seq == 6);
}
