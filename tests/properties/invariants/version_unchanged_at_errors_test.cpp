#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/version_unchanged.hpp"
#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

// K5: a run that stops with an error, in a backward, while something that a call relies on was
// written. And what version_unchanged can say of traces that record less.

namespace {

const std::string written = R"(
  {"kind":"mutate","phase":"forward","tensor":1,"storage":1,"name":"add_"}
)";

/// Forward of region A reads storage 1 and saves one tensor: events 1 to 5.
const std::string forward = R"(
  {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8,"name":"x"}]}
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[1],"outputs":[]}
  {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";

}  // namespace

TEST_CASE("version_unchanged explains a refused read by what its call relies on",
          "[invariants][version_unchanged]") {
  const std::string refused = R"(
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",9]}
    {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["graph_task",9],"type":"RuntimeError"}
  )";
  CHECK(checked(forward + written + refused).findings ==
        Findings{{"version_unchanged",
                  8,
                  "the run stops with RuntimeError in backward, and A#0 relies on storage 1 'x', "
                  "which it kept or read at event 3 and which was written since, at event 6 "
                  "(version 0 then, 1 now)",
                  {3, 6, 8}}});
  SECTION("by a cache entry before what forward read") {
    CHECK(checked(R"(
      {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
      {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
      {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[1],"outputs":[{"t":2,"s":2,"bytes":8}]}
      {"kind":"sac_decide","phase":"forward","op":"mm","idx":0,"saved":true,"tensors":[2]}
      {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
      {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
      {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
      {"kind":"mutate","phase":"forward","tensor":2,"storage":2}
    )" + refused)
              .findings == Findings{{"version_unchanged",
                                     10,
                                     "the run stops with RuntimeError in backward, and A#0 relies "
                                     "on storage 2, which it kept or read at event 4 and which was "
                                     "written since, at event 8 (version 0 then, 1 now)",
                                     {4, 8, 10}}});
  }
}

TEST_CASE("version_unchanged explains an error of a replay by what its call relies on",
          "[invariants][version_unchanged]") {
  CHECK(checked(forward + written + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"}
    {"kind":"error","phase":"backward","microbatch":2,"type":"RuntimeError"}
  )")
            .findings ==
        Findings{{"version_unchanged",
                  9,
                  "the run stops with RuntimeError in backward of micro-batch 2, and A#0 relies on "
                  "storage 1 'x', which it kept or read at event 3 and which was written since, at "
                  "event 6 (version 0 then, 1 now)",
                  {3, 6, 9}}});
}

TEST_CASE(
    "version_unchanged explains an error by a call without a frame that was about to be replayed",
    "[invariants][version_unchanged]") {
  CHECK(checked(R"(
    {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8,"name":"x"}]}
    {"kind":"unit_begin","phase":"forward","unit":"blk","inv":0,"exec":"forward","reentrant":true}
    {"kind":"op","phase":"forward","unit":"blk","inv":0,"name":"mm","inputs":[1],"outputs":[]}
    {"kind":"unit_end","phase":"forward","unit":"blk","inv":0,"exec":"forward","ended_by":"return"}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1,"name":"add_"}
    {"kind":"error","phase":"backward"}
  )")
            .findings == Findings{{"version_unchanged",
                                   6,
                                   "the run stops with an error in backward, and blk#0 relies on "
                                   "storage 1 'x', which it kept or read at event 3 and which was "
                                   "written since, at event 5 (version 0 then, 1 now)",
                                   {3, 5, 6}}});
}

TEST_CASE("version_unchanged takes no error for evidence by itself",
          "[invariants][version_unchanged]") {
  SECTION("nothing was written") {
    CHECK(checked(forward + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"}
      {"kind":"error","phase":"backward","type":"RuntimeError","first_lines":["modified by an inplace operation"]}
    )")
              .findings.empty());
  }
  SECTION("it was raised outside every backward, or does not end the run") {
    const std::string unframed = R"(
      {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
      {"kind":"unit_begin","phase":"forward","unit":"blk","inv":0,"exec":"forward"}
      {"kind":"op","phase":"forward","unit":"blk","inv":0,"name":"mm","inputs":[1],"outputs":[]}
      {"kind":"unit_end","phase":"forward","unit":"blk","inv":0,"exec":"forward","ended_by":"return"}
    )" + written;
    const auto raised_in = [&](const std::string& phase) {
      return checked(unframed + R"({"kind":"error","phase":")" + phase + "\"}").findings;
    };
    for (const char* phase : {"setup", "forward", "optimizer"})
      CHECK(raised_in(phase).empty());
    CHECK(checked(unframed + R"({"kind":"unpack_error","phase":"backward"})").findings.empty());
    CHECK(raised_in("backward").size() == 1);
  }
  SECTION("what was written has been told in the step") {
    CHECK(checked(forward + written + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[1],"outputs":[]}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"}
      {"kind":"error","phase":"backward","type":"RuntimeError"}
    )")
              .findings.size() == 1);
  }
  SECTION("forward itself wrote what it read") {
    CHECK(checked(R"(
      {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
      {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
      {"kind":"op","phase":"forward","unit":"A","name":"add_","inputs":[1],"outputs":[{"t":1,"s":1}]}
      {"kind":"mutate","phase":"forward","unit":"A","tensor":1,"storage":1}
      {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"}
      {"kind":"error","phase":"backward"}
    )")
              .findings.empty());
  }
  SECTION("the replay that raised has nothing to do with what was written") {
    CHECK(checked(forward + written + R"(
      {"kind":"unit_begin","phase":"forward","unit":"B","inv":0,"frame":2,"exec":"forward"}
      {"kind":"unit_end","phase":"forward","unit":"B","frame":2,"exec":"forward","ended_by":"return"}
      {"kind":"unit_begin","phase":"replay","unit":"B","inv":0,"frame":2,"exec":"replay","gid":["graph_task",9]}
      {"kind":"unit_end","phase":"replay","unit":"B","frame":2,"exec":"replay","ended_by":"RuntimeError"}
      {"kind":"error","phase":"backward"}
    )")
              .findings.empty());
  }
}

TEST_CASE(
    "version_unchanged does not explain an error of a later phase by an earlier replay that raised",
    "[invariants][version_unchanged]") {
  CHECK(checked(forward + written + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"}
    {"kind":"phase_begin","phase":"backward","microbatch":1}
    {"kind":"error","phase":"backward","microbatch":1,"type":"RuntimeError"}
  )")
            .findings.empty());
}

TEST_CASE(
    "version_unchanged compares recorded versions where the recorder sees neither writes nor "
    "storages",
    "[invariants][version_unchanged]") {
  const std::string header = R"(
    {"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_alloc","storage_free","mutate"]}
  )";
  const std::string packed = R"(
    {"kind":"pack","phase":"forward","unit":"A","slot":"A.0","held":"saved","role":"plain","tensor":{"t":1,"s":1,"v":1}}
  )";
  CHECK(checked(header + packed + R"(
    {"kind":"unpack","phase":"backward","slot":"A.0","tensor":{"t":2,"s":2,"v":1}}
  )")
            .findings.empty());
  CHECK(checked(header + packed + R"(
    {"kind":"unpack","phase":"backward","slot":"A.0","tensor":{"t":2,"s":2,"v":3}}
  )")
            .findings == Findings{{"version_unchanged",
                                   2,
                                   "slot A.0 of A is read in backward at version 3, but it was "
                                   "kept or filled at version 1 (event 1)",
                                   {1, 2}}});
}

TEST_CASE("version_unchanged counts writes and does not trust the recorded version elsewhere",
          "[invariants][version_unchanged]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1,"v":1}}
    {"kind":"unpack","phase":"backward","slot":"p","tensor":{"t":1,"s":1,"v":5}}
  )")
            .findings.empty());
}

TEST_CASE("version_unchanged says that it needs writes or versions",
          "[invariants][version_unchanged]") {
  CHECK(needs(checked(forward), "version_unchanged") ==
        "mutate events, or the version v of what is packed");
  CHECK(needs(checked(forward + written), "version_unchanged").empty());
  CHECK(needs(checked(R"({"kind":"pack","slot":"p","held":"saved","tensor":{"t":1,"s":1,"v":0}})"),
              "version_unchanged")
            .empty());
  // Nothing tells what forward of the frame read.
  CHECK(needs(checked(R"(
    {"kind":"pack","phase":"forward","frame":1,"idx":0,"slot":"f1.0","held":"placeholder","role":"checkpointed"}
    {"kind":"tensor","t":1,"s":1}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"unit_begin","phase":"replay","unit":"seg","frame":1,"exec":"replay","gid":["graph_task",1]}
    {"kind":"op","phase":"replay","name":"mm","inputs":[1],"outputs":[]}
  )"),
              "version_unchanged") ==
        "the reads of forward for 1 replayed call: a unit_begin or ops with the unit's name (what "
        "their replays read was not compared, their slots and inputs were)");
}
