#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/saved_lists_match.hpp"
#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

// Which calls saved_lists_match compares: regions inside others, calls that are gone, calls of
// which little is known.

TEST_CASE(
    "saved_lists_match counts a region inside a replay as its own forward and as part of the "
    "replay",
    "[invariants][saved_lists_match]") {
  const std::string nested = R"(
    {"kind":"unit_begin","phase":"forward","unit":"outer","frame":1,"exec":"forward"}
    {"kind":"unit_begin","phase":"forward","unit":"inner","frame":2,"exec":"forward","nested_in":1}
    {"kind":"op","phase":"forward","unit":"inner","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
    {"kind":"pack","phase":"forward","unit":"inner","frame":2,"idx":0,"slot":"f2.0","held":"placeholder","role":"checkpointed"}
    {"kind":"unit_end","phase":"forward","unit":"inner","frame":2,"exec":"forward","ended_by":"return"}
    {"kind":"unit_end","phase":"forward","unit":"outer","frame":1,"exec":"forward","ended_by":"return"}
    {"kind":"unit_begin","phase":"replay","unit":"outer","frame":1,"exec":"replay","gid":["graph_task",1]}
    {"kind":"unit_begin","phase":"replay","unit":"inner","frame":3,"exec":"forward","nested_in":1}
  )";
  CHECK(checked(nested + R"(
    {"kind":"op","phase":"replay","unit":"inner","name":"mm","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8}]}
    {"kind":"pack","phase":"replay","unit":"inner","frame":3,"idx":0,"slot":"f3.0","held":"placeholder","role":"checkpointed"}
    {"kind":"unit_end","phase":"replay","unit":"inner","frame":3,"exec":"forward","ended_by":"return"}
    {"kind":"unit_end","phase":"replay","unit":"outer","frame":1,"exec":"replay","ended_by":"return"}
    {"kind":"unit_begin","phase":"replay","unit":"inner","frame":3,"exec":"replay","gid":["graph_task",1]}
    {"kind":"op","phase":"replay","unit":"inner","name":"mm","inputs":[],"outputs":[{"t":3,"s":3,"bytes":8}]}
    {"kind":"repack","phase":"replay","frame":3,"idx":0,"gid":["graph_task",1]}
    {"kind":"unit_end","phase":"replay","unit":"inner","frame":3,"exec":"replay","ended_by":"return"}
  )")
            .findings.empty());
  CHECK(
      checked(nested + R"(
    {"kind":"op","phase":"replay","unit":"inner","name":"conv","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8}]}
  )")
          .findings ==
      Findings{{"saved_lists_match",
                9,
                "conv runs in the replay of outer for graph task 1, but forward of outer has no "
                "such op: the replay takes another path; expected forward's ops in forward's order",
                {1, 7, 9}}});
}

TEST_CASE("saved_lists_match forgets a call's path with the call",
          "[invariants][saved_lists_match]") {
  const auto call = [](const std::string& frame, const std::string& op) {
    return R"({"kind":"unit_begin","phase":"forward","unit":"B",)" + frame +
           R"("exec":"forward"})" + "\n" + R"({"kind":"op","phase":"forward","unit":"B","name":")" +
           op + R"(","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]})" + "\n" +
           R"({"kind":"unit_end","phase":"forward","unit":"B",)" + frame + R"("exec":"forward"})" +
           "\n" + R"({"kind":"storage_free","phase":"forward","storage":1})" + "\n";
  };
  const auto replay_of = [](const std::string& frame) {
    return R"({"kind":"unit_begin","phase":"replay","unit":"B",)" + frame + R"("exec":"replay"})" +
           "\n" +
           R"({"kind":"op","phase":"replay","unit":"B","name":"mm","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8}]})" +
           "\n";
  };
  SECTION("whose frame is freed and its number used anew") {
    const std::string frame = R"("frame":7,)";
    CHECK(checked(call(frame, "mm") + R"({"kind":"frame_free","frame":7})" + "\n" +
                  call(frame, "gelu") + replay_of(frame))
              .findings.size() == 1);
  }
  SECTION("without a frame, with its step") {
    CHECK(
        checked(call("", "mm") + R"({"kind":"step_end"})" + "\n" + call("", "gelu") + replay_of(""))
            .findings.size() == 1);
  }
}

TEST_CASE(
    "saved_lists_match alone tells a replay that left forward's order, whatever its fills hand out",
    "[invariants][saved_lists_match]") {
  const Verdict verdict = checked(R"(
    {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
    {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed"}
    {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",1]}
    {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["graph_task",1],"tensor":{"t":1,"s":1}}
    {"kind":"unpack","phase":"backward","slot":"A.1","gid":["graph_task",1],"tensor":{"t":2,"s":2}}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "saved_lists_match");
  CHECK(verdict.findings.front().seq == 4);
}

TEST_CASE("saved_lists_match compares no path with a forward whose outputs were not recorded",
          "[invariants][saved_lists_match]") {
  CHECK(checked(R"(
    {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[]}
    {"kind":"unit_begin","phase":"replay","unit":"A","exec":"replay"}
    {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
  )")
            .findings.empty());
}
