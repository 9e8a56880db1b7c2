#include "properties/invariants/gradients_equal_plain.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// The run without checkpointing gives w two contributions, b one, and u none.
const std::string header = R"(
  {"kind":"header","format":"ckpt-trace","version":1,"expect":{"gradients":{"b":[[1, 2]],"u":[],"w":["g1","g2"]}}}
)";
const std::string gradients_of_w = R"(
  {"kind":"grad","phase":"backward","param":"w","value":"g1"}
  {"kind":"grad","phase":"backward","param":"w","value":"g2"}
)";
const std::string gradient_of_b = R"(
  {"kind":"grad","phase":"backward","param":"b","value":[1,2]}
)";
const std::string closing = R"(
  {"kind":"step_end"}
)";

const std::string packed = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"dtype":"f32","shape":[4],"value":"mask@0"}}
)";

}  // namespace

TEST_CASE("gradients_equal_plain names a contribution that comes twice",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + gradients_of_w + gradient_of_b + R"(
    {"kind":"grad","phase":"backward","param":"w","value":"g1"}
  )" + closing)
            .findings == Findings{{"gradients_equal_plain",
                                   5,
                                   "the gradient of w got \"g1\", \"g1\", \"g2\"; the run without "
                                   "checkpointing gives \"g1\", \"g2\"",
                                   {1, 2, 4, 5}}});
}

TEST_CASE("gradients_equal_plain names a contribution of another value",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + gradients_of_w + R"(
    {"kind":"grad","phase":"backward","param":"b","value":[1,3]}
  )" + closing)
            .findings ==
        Findings{{"gradients_equal_plain",
                  4,
                  "the gradient of b got [1,3]; the run without checkpointing gives [1,2]",
                  {3, 4}}});
}

TEST_CASE("gradients_equal_plain names a gradient that is missing",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + gradients_of_w + closing).findings ==
        Findings{{"gradients_equal_plain",
                  3,
                  "the gradient of b got none; the run without checkpointing gives [1,2]",
                  {3}}});
}

TEST_CASE("gradients_equal_plain names a gradient that must be missing",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + gradients_of_w + gradient_of_b + R"(
    {"kind":"grad","phase":"backward","param":"u","value":0}
  )" + closing)
            .findings ==
        Findings{{"gradients_equal_plain",
                  5,
                  "the gradient of u got 0; the run without checkpointing gives none",
                  {4, 5}}});
}

TEST_CASE("gradients_equal_plain counts contributions whose value was not recorded",
          "[invariants][gradients_equal_plain]") {
  const std::string without_value = R"(
    {"kind":"grad","phase":"backward","param":"b"}
  )";
  CHECK(checked(header + gradients_of_w + without_value + closing).findings.empty());
  CHECK(checked(header + gradients_of_w + without_value + without_value + closing).findings ==
        Findings{{"gradients_equal_plain",
                  5,
                  "the gradient of b got 2 contributions without a recorded value; the run without "
                  "checkpointing gives [1,2]",
                  {3, 4, 5}}});
}

TEST_CASE("gradients_equal_plain takes contributions in any order, step by step",
          "[invariants][gradients_equal_plain]") {
  const std::string step = R"(
    {"kind":"grad","phase":"backward_weight","param":"b","value":[ 1, 2 ]}
    {"kind":"grad","phase":"backward_weight","param":"w","value":"g2"}
    {"kind":"grad","phase":"backward_weight","param":"w","value":"g1"}
  )";
  CHECK(checked(header + step + closing + step + closing).findings.empty());
  CHECK(checked(header + step + closing + gradients_of_w + closing).findings ==
        Findings{{"gradients_equal_plain",
                  7,
                  "the gradient of b got none; the run without checkpointing gives [1,2]",
                  {7}}});
}

TEST_CASE("gradients_equal_plain waits for the last rank to end the step",
          "[invariants][gradients_equal_plain]") {
  const std::string step = R"(
    {"kind":"grad","rank":0,"phase":"backward","param":"w","value":"g1"}
    {"kind":"grad","rank":1,"phase":"backward","param":"w","value":"g2"}
    {"kind":"step_end","rank":0}
    {"kind":"grad","rank":1,"phase":"backward","param":"b","value":[1,2]}
    {"kind":"step_end","rank":1}
  )";
  CHECK(checked(header + step + step).findings.empty());
}

TEST_CASE("gradients_equal_plain does not judge what nothing is expected of",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + gradients_of_w + gradient_of_b + R"(
    {"kind":"grad","phase":"backward","param":"x","value":7}
    {"kind":"grad","phase":"backward","value":7}
  )" + closing)
            .findings.empty());
}

TEST_CASE("gradients_equal_plain expects nothing of a step that stopped with an error",
          "[invariants][gradients_equal_plain]") {
  CHECK(checked(header + R"(
    {"kind":"error","phase":"backward","type":"RuntimeError"}
  )" + closing)
            .findings.empty());
}

TEST_CASE("gradients_equal_plain compares a refilled value with the packed one",
          "[invariants][gradients_equal_plain]") {
  SECTION("by a replay") {
    CHECK(checked(packed + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[4],"value":"mask@1"}}
    )")
              .findings ==
          Findings{{"gradients_equal_plain",
                    3,
                    "slot A.0 of A#0 (micro-batch 0) was packed with value \"mask@0\" and is "
                    "filled in the replay of A#0 (micro-batch 0) for graph task 9 with \"mask@1\"; "
                    "expected the value that forward saved",
                    {1, 3}}});
  }
  SECTION("in an excluded region's slot") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","frame":1,"wrapper":"w","slot":"w.0","role":"excl_input","held":"slot","tensor":{"dtype":"f32","shape":[4],"off":0,"value":5}}
      {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","tensor":{"dtype":"f32","shape":[4],"off":8,"value":6}}
    )")
              .findings ==
          Findings{{"gradients_equal_plain",
                    2,
                    "slot w.0 of wrapper w was packed with value 5 and is filled in replay "
                    "with 6; expected the value that forward saved",
                    {1, 2}}});
  }
  SECTION("equal values are fine, and so are values that one side lacks") {
    CHECK(checked(packed + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[4],"value":"mask@0"}}
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",10],"tensor":{"dtype":"f32","shape":[4]}}
    )")
              .findings.empty());
  }
  SECTION("a replay that draws elsewhere computes other values: that is rng_position's alone") {
    const Verdict verdict = checked(R"(
      {"kind":"unit_begin","phase":"forward","unit":"A","frame":1,"exec":"forward"}
      {"kind":"rng","phase":"forward","generator":"cuda"}
    )" + packed + R"(
      {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
      {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"rng","phase":"replay","generator":"cuda"}
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[4],"value":"mask@1"}}
    )");
    REQUIRE(verdict.findings.size() == 1);
    CHECK(verdict.findings.front().invariant == "rng_position");
  }
  SECTION("another layout is saved_lists_match's alone") {
    const Verdict verdict = checked(packed + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[5],"value":"mask@1"}}
    )");
    REQUIRE(verdict.findings.size() == 1);
    CHECK(verdict.findings.front().invariant == "saved_lists_match");
  }
}

TEST_CASE("gradients_equal_plain compares the value that is read with the one that was given",
          "[invariants][gradients_equal_plain]") {
  SECTION("filled in") {
    CHECK(checked(packed + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[4],"value":"mask@0"}}
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["graph_task",9],"tensor":{"dtype":"f32","shape":[4],"value":"mask@2"}}
    )")
              .findings ==
          Findings{{"gradients_equal_plain",
                    3,
                    "slot A.0 of A#0 (micro-batch 0) is read in backward of micro-batch 0 with "
                    "value \"mask@2\", but it was given \"mask@0\" at event 2",
                    {2, 3}}});
  }
  SECTION("not where only the read has one, or nobody knows how the slot holds its tensor") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"shape":[4]}}
      {"kind":"pack","phase":"forward","slot":"q","held":"compressed","role":"plain","tensor":{"value":1}}
      {"kind":"unpack","phase":"backward","slot":"p","tensor":{"value":4}}
      {"kind":"unpack","phase":"backward","slot":"q","tensor":{"value":4}}
    )")
              .findings.empty());
  }
  SECTION("kept") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"value":{"ring":3}}}
      {"kind":"unpack","phase":"backward","slot":"p","tensor":{"value":{"ring":4}}}
    )")
              .findings == Findings{{"gradients_equal_plain",
                                     2,
                                     "slot p is read in backward with value {\"ring\":4}, but it "
                                     "was given {\"ring\":3} at event 1",
                                     {1, 2}}});
  }
}

TEST_CASE("gradients_equal_plain says what it lacks", "[invariants][gradients_equal_plain]") {
  CHECK(needs(checked(gradients_of_w + closing), "gradients_equal_plain") ==
        "expect.gradients in the header, or a value on pack and repack");
  CHECK(needs(checked(header + gradients_of_w), "gradients_equal_plain") == "a step_end event");
  CHECK(needs(checked(packed + R"(
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",9],"tensor":{"value":"mask@0"}}
  )"),
              "gradients_equal_plain")
            .empty());
}
