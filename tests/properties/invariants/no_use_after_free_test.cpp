#include "properties/invariants/no_use_after_free.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

/// Storage 1 is made: events 1 and 2.
const std::string made = R"(
  {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8,"name":"w.full"}
  {"kind":"op","phase":"forward","unit":"A","inv":0,"microbatch":0,"name":"gather","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
)";
const std::string released = R"(
  {"kind":"storage_free","phase":"backward","storage":1}
)";
const std::string made_again = R"(
  {"kind":"storage_alloc","phase":"backward","storage":1,"bytes":8}
)";
const std::string kept = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
)";
const std::string placeholder = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
)";
const std::string read_by_mm = R"(
  {"kind":"op","phase":"backward","microbatch":0,"name":"mm","inputs":[1],"outputs":[]}
)";

}  // namespace

TEST_CASE("no_use_after_free names each way to read a released storage",
          "[invariants][no_use_after_free]") {
  SECTION("an op reads it") {
    CHECK(checked(made + released + read_by_mm).findings ==
          Findings{{"no_use_after_free",
                    4,
                    "storage 1 'w.full' is read by mm in backward of micro-batch 0, but it was "
                    "released at event 3; expected the release after its last reader",
                    {3, 4}}});
  }
  SECTION("an op reads it through a view") {
    CHECK(checked(made + R"(
      {"kind":"op","phase":"forward","name":"view","inputs":[1],"outputs":[{"t":2,"s":1,"bytes":8}]}
    )" + released +
                  R"(
      {"kind":"op","phase":"backward","name":"mm","inputs":[2],"outputs":[]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    5,
                    "storage 1 'w.full' is read by mm in backward, but it was released at event 4; "
                    "expected the release after its last reader",
                    {4, 5}}});
  }
  SECTION("an op of a hook reads it") {
    CHECK(checked(made + released + R"(
      {"kind":"op","phase":"backward","name":"copy","internal":"unpack","inputs":[1],"outputs":[]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    4,
                    "storage 1 'w.full' is read by copy in backward, but it was released at event "
                    "3; expected the release after its last reader",
                    {3, 4}}});
  }
  SECTION("a kept slot is read") {
    CHECK(checked(made + kept + released + R"(
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"p","gid":["graph_task",9]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    5,
                    "storage 1 'w.full' is read through slot p of A#0 (micro-batch 0) in backward "
                    "of micro-batch 0, but it was released at event 4; expected the release after "
                    "its last reader",
                    {4, 5}}});
  }
  SECTION("a filled slot is read") {
    CHECK(checked(placeholder + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    )" + made + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
      {"kind":"storage_free","phase":"replay","storage":1}
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["graph_task",9]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    7,
                    "storage 1 'w.full' is read through slot A.0 of A#0 (micro-batch 0) in "
                    "backward of micro-batch 0, but it was released at event 6; expected the "
                    "release after its last reader",
                    {6, 7}}});
  }
  SECTION("a slot is filled with it") {
    CHECK(checked(placeholder + made + released + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    6,
                    "storage 1 'w.full' is put in slot A.0 of A#0 (micro-batch 0) in the replay of "
                    "A#0 (micro-batch 0) for graph task 9, but it was released at event 4; "
                    "expected the release after its last reader",
                    {4, 6}}});
  }
  SECTION("an excluded region's slot is filled with it") {
    CHECK(checked(made + released + R"(
      {"kind":"pack","phase":"forward","frame":1,"wrapper":"w","slot":"w.0","role":"excl_input","held":"slot"}
      {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","tensor":{"t":1,"s":1}}
    )")
              .findings == Findings{{"no_use_after_free",
                                     5,
                                     "storage 1 'w.full' is put in slot w.0 of wrapper w in "
                                     "replay, but it was released at event "
                                     "3; expected the release after its last reader",
                                     {3, 5}}});
  }
  SECTION("an excluded region's entry keeps it") {
    CHECK(checked(excluded_forward + R"({"kind":"storage_free","storage":2})" + excluded_replay)
              .findings ==
          Findings{{"no_use_after_free",
                    15,
                    "storage 2 is handed to a replay as a kept output of wrapper w#0 of A#0 in the "
                    "replay of A#0 for session g, but it was released at event 11; expected the "
                    "release after its last reader",
                    {11, 15}}});
    CHECK(checked(excluded_forward + excluded_replay + R"({"kind":"storage_free","storage":2})")
              .findings.empty());
  }
  SECTION("a cache hands it out") {
    CHECK(checked(made + released + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"sac_hit","phase":"replay","op":"gather","idx":0,"tensors":[1]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    5,
                    "storage 1 'w.full' is served from the cache in place of gather in the replay "
                    "of A for graph task 9, but it was released at event 3; expected the release "
                    "after its last reader",
                    {3, 5}}});
  }
  SECTION("a region's kept output is it") {
    CHECK(checked(made + released + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
      {"kind":"remat_serve","phase":"replay","region":"R","output":0,"tensor":{"t":1,"s":1}}
    )")
              .findings ==
          Findings{
              {"no_use_after_free",
               5,
               "storage 1 'w.full' is served as an output of region R in the replay of A for graph "
               "task 9, but it was released at event 3; expected the release after its last reader",
               {3, 5}}});
  }
  SECTION("a region's input is it") {
    CHECK(checked(made + R"(
      {"kind":"frame_create","phase":"forward","unit":"A","inv":0,"frame":1}
      {"kind":"inputs_save","phase":"forward","frame":1,"tensors":[1]}
    )" + released +
                  R"(
      {"kind":"inputs_unpack","phase":"backward","microbatch":0,"frame":1,"tensors":[1]}
    )")
              .findings == Findings{{"no_use_after_free",
                                     6,
                                     "storage 1 'w.full' is handed to a replay as a region's input "
                                     "in backward of micro-batch 0, but it was released at event "
                                     "5; expected the release after its last reader",
                                     {5, 6}}});
  }
}

TEST_CASE("no_use_after_free tells a late reader once for each release",
          "[invariants][no_use_after_free]") {
  CHECK(checked(made + released + read_by_mm + read_by_mm).findings.size() == 1);
  // A write in place does not bring it back to life.
  CHECK(checked(made + released + R"(
    {"kind":"op","phase":"backward","name":"add_","inputs":[1],"outputs":[{"t":1,"s":1,"bytes":8}]}
  )" + released)
            .findings.size() == 2);
  CHECK(
      checked(made + released + read_by_mm + made_again + released + read_by_mm).findings.size() ==
      2);
}

TEST_CASE("no_use_after_free names a second release of a dead storage",
          "[invariants][no_use_after_free]") {
  CHECK(checked(made + released + R"(
    {"kind":"storage_free","phase":"optimizer","microbatch":0,"storage":1}
  )")
            .findings ==
        Findings{{"no_use_after_free",
                  4,
                  "storage 1 'w.full' is released in optimizer of micro-batch 0 a second time, the "
                  "first was at event 3; a storage is released once, by its owner",
                  {3, 4}}});
}

TEST_CASE("no_use_after_free names a slot that is asked for after its holder is gone",
          "[invariants][no_use_after_free]") {
  const std::string gone = made + kept + R"(
    {"kind":"holder_free","phase":"backward","slot":"p"}
  )";
  SECTION("read") {
    CHECK(checked(gone + R"(
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"p"}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    5,
                    "slot p is asked for in backward of micro-batch 0, but its owner released it "
                    "at event 4; expected the read before the release",
                    {4, 5}}});
  }
  SECTION("read, while the frame still knows what was packed") {
    CHECK(checked(placeholder + R"(
      {"kind":"holder_free","phase":"backward","slot":"A.0","frame":1}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",9]}
    )")
              .findings ==
          Findings{{"no_use_after_free",
                    3,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward, but its owner "
                    "released it at event 2; expected the read before the release",
                    {2, 3}}});
  }
  SECTION("refused, where no request stands") {
    CHECK(checked(gone + R"(
      {"kind":"unpack_error","phase":"backward","slot":"p"}
    )")
              .findings.size() == 1);
  }
  SECTION("asked for and refused: told once") {
    CHECK(checked(gone + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"p"}
      {"kind":"unpack_error","phase":"backward","slot":"p"}
    )")
              .findings == Findings{{"no_use_after_free",
                                     5,
                                     "slot p is asked for in backward, but its owner released it "
                                     "at event 4; expected the read before the release",
                                     {4, 5}}});
  }
}

TEST_CASE("no_use_after_free takes a storage that is made again for alive",
          "[invariants][no_use_after_free]") {
  // Resharding: the same id is released and gathered anew, by name or as an op's output.
  CHECK(checked(made + kept + released + made_again + R"(
    {"kind":"unpack","phase":"backward","slot":"p"}
  )" + released)
            .findings.empty());
  CHECK(checked(made + kept + released + R"(
    {"kind":"op","phase":"backward","name":"gather","inputs":[],"outputs":[{"t":2,"s":1,"bytes":8}]}
    {"kind":"unpack","phase":"backward","slot":"p"}
  )" + released)
            .findings.empty());
}

TEST_CASE("no_use_after_free takes a storage that was never allocated for one from before",
          "[invariants][no_use_after_free]") {
  CHECK(checked(R"(
    {"kind":"op","phase":"forward","name":"mm","inputs":[5],"reads":[{"t":5,"s":5,"bytes":8}],"outputs":[]}
    {"kind":"mutate","phase":"forward","tensor":5,"storage":5}
    {"kind":"op","phase":"backward","name":"mm","inputs":[5],"outputs":[]}
  )")
            .findings.empty());
}

TEST_CASE("no_use_after_free knows that an op is written after it ran",
          "[invariants][no_use_after_free]") {
  // set_ gives a tensor another storage: it does not read the old one, and what that releases
  // stands before it.
  CHECK(checked(made + released + R"(
    {"kind":"op","phase":"backward","name":"set_","inputs":[1],"outputs":[{"t":1,"s":2,"bytes":8}]}
  )")
            .findings.empty());
  // An op in place does.
  CHECK(checked(made + released + R"(
    {"kind":"op","phase":"backward","name":"add_","inputs":[1],"outputs":[{"t":1,"s":1,"bytes":8}]}
  )")
            .findings ==
        Findings{{"no_use_after_free",
                  4,
                  "storage 1 'w.full' is read by add_ in backward, but it was released at event 3; "
                  "expected the release after its last reader",
                  {3, 4}}});
}

TEST_CASE("no_use_after_free leaves a region's inputs alone until they are handed out",
          "[invariants][no_use_after_free]") {
  // U2: the inputs of a region inside another are that region's slots, and may be gone when they
  // are listed.
  CHECK(checked(made + released + R"(
    {"kind":"frame_create","phase":"replay","unit":"inner","frame":2}
    {"kind":"inputs_save","phase":"replay","frame":2,"tensors":[1]}
    {"kind":"inputs_unpack_begin","phase":"backward","frame":2}
  )")
            .findings.empty());
}

TEST_CASE("no_use_after_free says what it lacks", "[invariants][no_use_after_free]") {
  CHECK(needs(checked(made + read_by_mm), "no_use_after_free") ==
        "storage_free or holder_free events");
  CHECK(needs(checked(made + released), "no_use_after_free").empty());
  CHECK(needs(checked(kept + R"({"kind":"holder_free","slot":"p"})"), "no_use_after_free").empty());
  const Verdict verdict = checked(
      R"({"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_free"]})" +
      made + released + read_by_mm);
  CHECK(verdict.findings.empty());
  CHECK(needs(verdict, "no_use_after_free") ==
        "storage_alloc and storage_free events, which the header says are not recorded");
}
