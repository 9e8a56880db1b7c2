#include "properties/invariants/saved_lists_match.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Forward of region A runs mm and gelu and saves two tensors: events 1 to 6.
const std::string forward = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"forward"}
  {"kind":"op","phase":"forward","unit":"A","inv":0,"microbatch":0,"name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"dtype":"f32","shape":[4,8],"stride":[8,1],"off":0,"device":"cuda:0","bytes":128}]}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1,"dtype":"f32","shape":[4,8],"stride":[8,1],"off":0,"device":"cuda:0","bytes":128}}
  {"kind":"op","phase":"forward","unit":"A","inv":0,"microbatch":0,"name":"gelu","inputs":[1],"outputs":[{"t":2,"s":2,"dtype":"f32","shape":[4,8],"bytes":128}]}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed","tensor":{"t":2,"s":2,"dtype":"f32","shape":[4,8],"bytes":128}}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";
/// … and its replay begins: event 7.
const std::string replay = forward + R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
)";
const std::string replayed_mm = R"(
  {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[],"outputs":[{"t":11,"s":11,"dtype":"f32","shape":[4,8],"bytes":128}]}
)";
const std::string replayed_gelu = R"(
  {"kind":"op","phase":"replay","unit":"A","name":"gelu","inputs":[11],"outputs":[{"t":12,"s":12,"dtype":"f32","shape":[4,8],"bytes":128}]}
)";
const std::string fill_0 = R"(
  {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":11,"s":11,"dtype":"f32","shape":[4,8],"stride":[8,1],"off":0,"device":"cuda:0","bytes":128}}
)";
const std::string fill_1 = R"(
  {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["graph_task",9],"tensor":{"t":12,"s":12,"dtype":"f32","shape":[4,8],"bytes":128}}
)";
const std::string returned = R"(
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
)";
const std::string stopped = R"(
  {"kind":"early_stop","phase":"replay","unit":"A","frame":1,"gid":["graph_task",9]}
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"_StopRecomputationError"}
)";

/// A replay that fills save 0 with a tensor of these fields.
std::string filled_with(const std::string& fields) {
  return replay +
         R"({"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":11,"s":11,)" +
         fields + "}}";
}

}  // namespace

TEST_CASE("saved_lists_match compares each part of the layout when a slot is filled",
          "[invariants][saved_lists_match]") {
  struct Row {
    std::string fields, shown;
  };
  const std::vector<Row> rows = {
      {R"("dtype":"f64","shape":[4,8],"stride":[8,1],"off":0,"device":"cuda:0")",
       "f64 [4,8] stride [8,1] offset 0 on cuda:0"},
      {R"("dtype":"f32","shape":[5,8],"stride":[8,1],"off":0,"device":"cuda:0")",
       "f32 [5,8] stride [8,1] offset 0 on cuda:0"},
      {R"("dtype":"f32","shape":[4,8],"stride":[1,4],"off":0,"device":"cuda:0")",
       "f32 [4,8] stride [1,4] offset 0 on cuda:0"},
      {R"("dtype":"f32","shape":[4,8],"stride":[8,1],"off":32,"device":"cuda:0")",
       "f32 [4,8] stride [8,1] offset 32 on cuda:0"},
      {R"("dtype":"f32","shape":[4,8],"stride":[8,1],"off":0,"device":"cpu")",
       "f32 [4,8] stride [8,1] offset 0 on cpu"},
      {R"("shape":[])", "[]"},
  };
  for (const Row& row : rows) {
    CHECK(checked(filled_with(row.fields)).findings ==
          Findings{
              {"saved_lists_match",
               8,
               "slot A.0 of A#0 (micro-batch 0) was packed as f32 [4,8] stride [8,1] offset 0 on "
               "cuda:0 and is filled in the replay of A#0 (micro-batch 0) for graph task 9 with " +
                   row.shown + "; expected the layout that forward saved",
               {3, 8}}});
  }
  // What one side did not record agrees.
  CHECK(checked(filled_with(R"("bytes":256)")).findings.empty());
  CHECK(checked(filled_with(R"("dtype":"f32","shape":[4,8])")).findings.empty());
}

TEST_CASE("saved_lists_match compares the layout also for a slot whose holder is gone",
          "[invariants][saved_lists_match]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"holder_free","phase":"forward","slot":"A.0","frame":1}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"holder_alive":false,"gid":["graph_task",9],"tensor":{"t":11,"s":11,"dtype":"f32","shape":[4,9]}}
  )");
  CHECK(
      verdict.findings ==
      Findings{
          {"saved_lists_match",
           8,
           "slot A.0 of A#0 (micro-batch 0) was packed as f32 [4,8] stride [8,1] offset 0 on "
           "cuda:0 and is filled in replay with f32 [4,9]; expected the layout that forward saved",
           {3, 8}}});
}

TEST_CASE("saved_lists_match compares the layout again when the slot is read",
          "[invariants][saved_lists_match]") {
  SECTION("with what was filled in") {
    CHECK(checked(replay + fill_0 + R"(
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["graph_task",9],"tensor":{"t":13,"s":11,"dtype":"f32","shape":[8,4]}}
    )")
              .findings ==
          Findings{{"saved_lists_match",
                    9,
                    "slot A.0 of A#0 (micro-batch 0) was filled as f32 [4,8] stride [8,1] offset 0 "
                    "on cuda:0 and is read in backward of micro-batch 0 as f32 [8,4]; expected the "
                    "layout that was filled in",
                    {8, 9}}});
  }
  SECTION("with what was kept") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1,"dtype":"f32","shape":[4,8]}}
      {"kind":"unpack","phase":"backward","slot":"p","tensor":{"t":2,"s":1,"dtype":"f32","shape":[8,4]}}
    )")
              .findings == Findings{{"saved_lists_match",
                                     2,
                                     "slot p was kept as f32 [4,8] and is read in backward as f32 "
                                     "[8,4]; expected the layout that was kept",
                                     {1, 2}}});
  }
  SECTION("one fault, one finding: a slot that was filled wrongly is read wrongly") {
    CHECK(checked(filled_with(R"("shape":[5,8])") + R"(
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",9],"tensor":{"t":11,"s":11,"shape":[4,8]}}
    )")
              .findings.size() == 1);
  }
}

TEST_CASE("saved_lists_match compares an excluded region's slot without the offset",
          "[invariants][saved_lists_match]") {
  const std::string packed = R"(
    {"kind":"pack","phase":"forward","frame":1,"wrapper":"w","call":0,"slot":"w.0","role":"excl_input","held":"slot","tensor":{"t":1,"s":1,"dtype":"f32","shape":[4],"off":8}}
  )";
  CHECK(checked(packed + R"(
    {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","tensor":{"t":2,"s":2,"dtype":"f32","shape":[4],"off":0}}
  )")
            .findings.empty());
  CHECK(checked(packed + R"(
    {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","tensor":{"t":2,"s":2,"dtype":"f32","shape":[5],"off":0}}
  )")
            .findings == Findings{{"saved_lists_match",
                                   2,
                                   "slot w.0 of wrapper w#0 was packed as f32 [4] offset 8 and is "
                                   "filled in replay with f32 [5] "
                                   "offset 0; expected the layout that forward saved",
                                   {1, 2}}});
}

TEST_CASE("saved_lists_match names a fill beyond forward's last save",
          "[invariants][saved_lists_match]") {
  SECTION("by its number") {
    CHECK(checked(replay + replayed_mm + fill_0 + replayed_gelu + fill_1 + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":2,"gid":["graph_task",9],"tensor":{"t":12,"s":12}}
    )")
              .findings ==
          Findings{
              {"saved_lists_match",
               12,
               "save 2 of A#0 (micro-batch 0) is filled in the replay of A#0 (micro-batch 0) for "
               "graph task 9, but forward saved 2 tensors; the replay saves more than forward did",
               {12}}});
  }
  SECTION("by a name that forward has not given") {
    CHECK(checked(replay + fill_0 + R"(
      {"kind":"repack","phase":"replay","slot":"A.7","gid":["graph_task",9],"tensor":{"t":12,"s":12}}
    )")
              .findings ==
          Findings{{"saved_lists_match",
                    9,
                    "slot A.7 is filled in the replay of A#0 (micro-batch 0) for graph task 9, but "
                    "forward saved nothing under that name; the replay saves more than forward did",
                    {9}}});
  }
}

TEST_CASE("saved_lists_match takes no fill for surplus while nothing tells what forward saved",
          "[invariants][saved_lists_match]") {
  CHECK(checked(R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","frame":1,"exec":"forward"}
    {"kind":"repack","phase":"forward","frame":1,"idx":3}
    {"kind":"repack","phase":"replay","frame":99,"idx":0}
    {"kind":"repack","phase":"replay","idx":0}
  )")
            .findings.empty());
}

TEST_CASE("saved_lists_match names a replay that returns with slots unfilled",
          "[invariants][saved_lists_match]") {
  CHECK(checked(replay + replayed_mm + fill_0 + returned).findings ==
        Findings{{"saved_lists_match",
                  10,
                  "the replay of A#0 (micro-batch 0) for graph task 9 has returned without filling "
                  "1 slot (A.1); expected it to save all that forward saved",
                  {5, 7, 10}}});
  CHECK(checked(replay + replayed_mm + returned).findings ==
        Findings{{"saved_lists_match",
                  9,
                  "the replay of A#0 (micro-batch 0) for graph task 9 has returned without filling "
                  "2 slots (A.0, A.1); expected it to save all that forward saved",
                  {3, 5, 7, 9}}});
}

TEST_CASE("saved_lists_match lets a replay end without filling what it does not owe",
          "[invariants][saved_lists_match]") {
  SECTION("it filled all") {
    CHECK(checked(replay + replayed_mm + fill_0 + replayed_gelu + fill_1 + returned)
              .findings.empty());
  }
  SECTION("it was stopped early, even before an op and a slot") {
    CHECK(checked(replay + replayed_mm + fill_0 + stopped).findings.empty());
  }
  SECTION("it raised") {
    CHECK(checked(replay + replayed_mm + R"(
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"ValueError"}
    )")
              .findings.empty());
  }
  SECTION("nobody holds the slot any more") {
    CHECK(checked(forward + R"({"kind":"holder_free","phase":"forward","slot":"A.1","frame":1})" +
                  "\n" + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    )" + replayed_mm +
                  fill_0 + returned)
              .findings.empty());
  }
  SECTION("how it ended was not recorded") {
    CHECK(checked(replay +
                  R"({"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay"})")
              .findings.empty());
  }
}

TEST_CASE("saved_lists_match names a replay that leaves forward's path",
          "[invariants][saved_lists_match]") {
  SECTION("an op that forward did not run") {
    CHECK(checked(replay + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"bmm","inputs":[],"outputs":[{"t":11,"s":11,"bytes":128}]}
      {"kind":"op","phase":"replay","unit":"A","name":"relu","inputs":[],"outputs":[{"t":12,"s":12,"bytes":128}]}
    )")
              .findings ==
          Findings{{"saved_lists_match",
                    8,
                    "bmm runs in the replay of A#0 (micro-batch 0) for graph task 9, but forward "
                    "of A#0 (micro-batch 0) has no such op: the replay takes another path; "
                    "expected forward's ops in forward's order",
                    {1, 7, 8}}});
  }
  SECTION("an op more often than forward") {
    CHECK(checked(replay + replayed_mm + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[],"outputs":[{"t":12,"s":12,"bytes":128}]}
    )")
              .findings ==
          Findings{{"saved_lists_match",
                    9,
                    "mm runs in the replay of A#0 (micro-batch 0) for graph task 9, but forward of "
                    "A#0 (micro-batch 0) has no such op after mm: the replay takes another path; "
                    "expected forward's ops in forward's order",
                    {1, 7, 9}}});
  }
  SECTION("ops in another order") {
    CHECK(checked(replay + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"gelu","inputs":[],"outputs":[{"t":12,"s":12,"bytes":128}]}
    )" + replayed_mm)
              .findings ==
          Findings{{"saved_lists_match",
                    9,
                    "mm runs in the replay of A#0 (micro-batch 0) for graph task 9, but forward of "
                    "A#0 (micro-batch 0) has no such op after gelu: the replay takes another path; "
                    "expected forward's ops in forward's order",
                    {1, 7, 9}}});
  }
}

TEST_CASE("saved_lists_match asks for a subsequence of forward's ops that make new bytes",
          "[invariants][saved_lists_match]") {
  SECTION("an op that was kept does not run again") {
    CHECK(checked(replay + R"(
      {"kind":"sac_hit","phase":"replay","op":"mm","idx":0,"tensors":[{"t":1,"s":1}]}
      {"kind":"op","phase":"replay","unit":"A","name":"gelu","inputs":[1],"outputs":[{"t":12,"s":12,"bytes":128}]}
    )")
              .findings.empty());
  }
  SECTION("a view, an output without bytes and an op in place make none") {
    CHECK(checked(replay + replayed_mm + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"view","inputs":[11],"outputs":[{"t":21,"s":11,"bytes":128}]}
      {"kind":"op","phase":"replay","unit":"A","name":"empty","inputs":[],"outputs":[{"t":22,"s":22,"bytes":0}]}
      {"kind":"op","phase":"replay","unit":"A","name":"add_","inputs":[11],"outputs":[{"t":11,"s":11,"bytes":128}]}
      {"kind":"op","phase":"replay","unit":"A","name":"print","inputs":[11],"outputs":[]}
    )")
              .findings.empty());
  }
  SECTION("an op of a hook is not the model's") {
    CHECK(checked(replay + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"copy_to_host","internal":"repack","inputs":[],"outputs":[{"t":21,"s":21,"bytes":128}]}
    )")
              .findings.empty());
  }
  SECTION("a backward op between two replays is no part of them") {
    CHECK(checked(replay + replayed_mm + fill_0 + stopped + R"(
      {"kind":"op","phase":"backward","name":"mm_backward","inputs":[],"outputs":[{"t":31,"s":31,"bytes":128}]}
    )")
              .findings.empty());
  }
}

TEST_CASE("saved_lists_match wants a replay to save from the start on and without a gap",
          "[invariants][saved_lists_match]") {
  CHECK(checked(replay + R"(
    {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["graph_task",9],"tensor":{"t":12,"s":12,"dtype":"f32","shape":[4,8]}}
  )")
            .findings == Findings{{"saved_lists_match",
                                   8,
                                   "slot A.1 of A#0 (micro-batch 0) is filled in the replay of A#0 "
                                   "(micro-batch 0) for graph task 9 as save 1, where save 0 was "
                                   "due; a replay saves from the start on, without a gap",
                                   {7, 8}}});
  // A second replay of the frame, for another session, begins again at 0.
  CHECK(checked(replay + replayed_mm + fill_0 + stopped + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",10]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",10],"tensor":{"t":12,"s":12,"dtype":"f32","shape":[4,8]}}
  )")
            .findings.empty());
}

TEST_CASE("saved_lists_match says what it lacks", "[invariants][saved_lists_match]") {
  CHECK(needs(checked(forward), "saved_lists_match") == "repack events: what replays save");
  CHECK(needs(checked(replay + fill_0), "saved_lists_match").empty());
  // Nothing tells what forward of the frame ran: slots are compared, paths are not.
  CHECK(needs(checked(R"(
    {"kind":"pack","phase":"forward","frame":1,"idx":0,"slot":"f1.0","held":"placeholder","role":"checkpointed"}
    {"kind":"unit_begin","phase":"replay","unit":"seg","frame":1,"exec":"replay","gid":["graph_task",1]}
    {"kind":"op","phase":"replay","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
    {"kind":"op","phase":"replay","name":"mm","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8}]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",1]}
  )"),
              "saved_lists_match") ==
        "the ops of forward for 1 replayed call: a unit_begin or ops with the unit's name (their "
        "op paths were not compared, their slots were)");
}
