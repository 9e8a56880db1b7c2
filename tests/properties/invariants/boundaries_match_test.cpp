#include "properties/invariants/boundaries_match.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

const std::string sound = excluded_forward + excluded_replay + excluded_reads;

/// The same, and the output is not kept: a placeholder (event 16) takes its place, and comes out of
/// the wrapper as tensor 14 on storage 13 (event 20).
const std::string without_output =
    with(excluded_forward, R"("kept":true,"tensors":[{"t":2,"s":2}])", R"("kept":false)") +
    with(
        with(
            with(excluded_replay, R"("kept":true,"tensors":[2])", R"("kept":false)"),
            R"(  {"kind":"boundary")",
            R"(  {"kind":"placeholder","phase":"replay","frame":1,"wrapper":"w","call":0,"leaves":1,"tensor":{"t":13,"s":13,"shape":[0]}}
  {"kind":"op","phase":"replay","unit":"A","name":"view","internal":"boundary","inputs":[13],"outputs":[{"t":14,"s":13,"shape":[0]}]}
  {"kind":"boundary")"),
        R"("outputs":[2])", R"("outputs":[14])");

/// `without_output`, with that event in the replay, behind the wrapper's exit: event 22.
std::string read_in_replay(const std::string& event) {
  return with(without_output, R"(  {"kind":"unit_end","phase":"replay")",
              event + "\n" + R"(  {"kind":"unit_end","phase":"replay")");
}

}  // namespace

TEST_CASE("boundaries_match finds nothing in an excluded region that is replayed as it ran",
          "[invariants][boundaries_match]") {
  CHECK(checked(sound).findings == no_findings);
  CHECK(checked(without_output).findings == no_findings);
}

TEST_CASE("boundaries_match says what it needs", "[invariants][boundaries_match]") {
  CHECK(needs(checked(R"({"kind":"step_end"})"), "boundaries_match") ==
        "wrapper_exit, cache_pop or placeholder events: calls of excluded regions");
  CHECK(needs(checked(sound), "boundaries_match").empty());
}

TEST_CASE("boundaries_match compares the leaves that pass a boundary, where the call returned",
          "[invariants][boundaries_match]") {
  const std::string one_less = without_line(excluded_replay, R"("kind":"boundary")");
  SECTION("one is missing") {
    CHECK(checked(excluded_forward + one_less).findings ==
          Findings{{"boundaries_match",
                    17,
                    "wrapper w#0 of A#0 has boundaries on no output in the replay of A#0 for "
                    "session g, but had them on output 0 in forward (event 3); expected the same "
                    "outputs in both",
                    {3, 13, 17}}});
  }
  SECTION("it is another") {
    CHECK(
        checked(excluded_forward + with(excluded_replay, R"("leaf":0)", R"("leaf":1)")).findings ==
        Findings{{"boundaries_match",
                  18,
                  "wrapper w#0 of A#0 has boundaries on output 1 in the replay of A#0 for "
                  "session g, but had them on output 0 in forward (event 3); expected the same "
                  "outputs in both",
                  {3, 13, 18}}});
  }
  SECTION("forward had none") {
    CHECK(checked(without_line(excluded_forward, R"("kind":"boundary")") + excluded_replay)
              .findings ==
          Findings{{"boundaries_match",
                    17,
                    "wrapper w#0 of A#0 has boundaries on output 0 in the replay of A#0 for "
                    "session g, but had them on no output in forward (event 3); expected the same "
                    "outputs in both",
                    {3, 12, 17}}});
  }
  SECTION("an early stop inside a boundary owes nothing, nor does an error") {
    for (const char* how : {R"("ended_by":"_StopRecomputationError","outputs")",
                            R"("ended_by":"RuntimeError","outputs")", R"("outputs")"}) {
      CHECK(checked(excluded_forward + with(one_less, R"("ended_by":"return","outputs")", how))
                .findings == no_findings);
    }
  }
  SECTION("whether a leaf requires grad is not judged, nor the order") {
    const std::string second = R"("leaf":1,"requires_grad":true})";
    const std::string both = R"("leaf":0,"requires_grad":false,"exec":"forward","input":2}
      {"kind":"boundary","phase":"forward","frame":1,"wrapper":"w","call":0,)";
    CHECK(checked(with(excluded_forward, R"("leaf":0,"exec":"forward","input":2})", both + second) +
                  with(excluded_replay, R"("leaf":0,"exec":"replay","input":2})",
                       R"("leaf":1,"requires_grad":false}
      {"kind":"boundary","phase":"replay","frame":1,"wrapper":"w","call":0,"leaf":0})"))
              .findings == no_findings);
  }
}

TEST_CASE("boundaries_match compares calls by their order where no entries are recorded",
          "[invariants][boundaries_match]") {
  const std::string forward = without_line(excluded_forward, R"("kind":"cache_put")");
  const std::string replay = without_line(excluded_replay, R"("kind":"cache_pop")");
  CHECK(checked(forward + replay).findings == no_findings);
  CHECK(checked(forward + without_line(replay, R"("kind":"boundary")")).findings ==
        Findings{{"boundaries_match",
                  15,
                  "wrapper w#0 of A#0 has boundaries on no output in the replay of A#0 for session "
                  "g, but had them on output 0 in forward (event 3); expected the same outputs in "
                  "both",
                  {3, 12, 15}}});
}

TEST_CASE("boundaries_match names an entry that forward never put",
          "[invariants][boundaries_match]") {
  // Also where the real system refused it.
  for (const char* ok : {"true", "false"}) {
    const std::string again = with(R"(
  {"kind":"wrapper_enter","phase":"replay","frame":1,"wrapper":"w","call":1,"exec":"replay","skipped":true}
  {"kind":"cache_pop","phase":"replay","frame":1,"wrapper":"w","call":1,"ok":OK}
  {"kind":"wrapper_exit","phase":"replay","frame":1,"wrapper":"w","call":1,"exec":"replay","ended_by":"RuntimeError"}
  {"kind":"unit_end","phase":"replay")",
                                   "OK", ok);
    CHECK(checked(excluded_forward + with(excluded_replay, R"(
  {"kind":"unit_end","phase":"replay")",
                                          again))
              .findings ==
          Findings{{"boundaries_match",
                    20,
                    "wrapper w#1 of A#0 asks in the replay of A#0 for session g for the 2nd entry, "
                    "but forward left 1 there; expected no more calls in a replay than in forward",
                    {20}}});
  }
}

TEST_CASE("boundaries_match counts the tensors that a call gets, not their paths",
          "[invariants][boundaries_match]") {
  const std::string inputs = R"("inputs":[{"t":11,"s":11,"path":"arg0"}])";
  SECTION("one is missing") {
    CHECK(checked(excluded_forward + with(excluded_replay, inputs, R"("inputs":[])")).findings ==
          Findings{{"boundaries_match",
                    14,
                    "wrapper w#0 of A#0 gets 0 tensors in the replay of A#0 for session g, but got "
                    "1 in forward (event 3); expected as many",
                    {3, 13, 14}}});
  }
  SECTION("a placeholder is flat where forward had a container") {
    CHECK(checked(excluded_forward + with(excluded_replay, inputs,
                                          R"("inputs":[{"t":11,"s":11,"path":"arg0.items[0]"}])"))
              .findings == no_findings);
  }
  SECTION("the field is not recorded") {
    CHECK(checked(excluded_forward + with(excluded_replay, "," + inputs, "")).findings ==
          no_findings);
  }
}

TEST_CASE("boundaries_match compares the leaves of the entry that is popped",
          "[invariants][boundaries_match]") {
  CHECK(checked(excluded_forward + with(excluded_replay, R"("leaves":1)", R"("leaves":2)"))
            .findings ==
        Findings{{"boundaries_match",
                  14,
                  "wrapper w#0 of A#0 takes an entry of 2 outputs in the replay of A#0 for session "
                  "g, but 1 were put there at event 8; expected as many",
                  {8, 14}}});
}

TEST_CASE("boundaries_match tells a boundary's save from another",
          "[invariants][boundaries_match]") {
  SECTION("a boundary is filled by an op's save") {
    CHECK(checked(excluded_forward + with(excluded_replay, R"(,"boundary":true)", "")).findings ==
          Findings{{"boundaries_match",
                    17,
                    "slot A.0 of A#0 is a boundary's save, but is filled in the replay of A#0 for "
                    "session g with that of an op; expected a boundary in both or in neither",
                    {7, 17}}});
  }
  SECTION("an op's save is filled by a boundary") {
    CHECK(checked(with(excluded_forward, R"(,"boundary":true)", "") + excluded_replay).findings ==
          Findings{{"boundaries_match",
                    17,
                    "slot A.0 of A#0 is not a boundary's save, but is filled in the replay of A#0 "
                    "for session g with that of a boundary; expected a boundary in both or in "
                    "neither",
                    {7, 17}}});
  }
}

TEST_CASE("boundaries_match names an op that reads a placeholder",
          "[invariants][boundaries_match]") {
  const std::string expected =
      " in the replay of A#0 for session g reads the placeholder of wrapper w#0, output 0, of A#0 "
      "(event 20), which holds no data; expected the output to be kept for the replay, or its "
      "consumer to be excluded too";
  SECTION("with a result elsewhere, which nobody uses") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"square","inputs":[14],"outputs":[{"t":15,"s":15,"bytes":0}],"internal":null})"))
            .findings == Findings{{"boundaries_match", 21, "square" + expected, {20, 21}}});
  }
  SECTION("with no result") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"item","inputs":[14],"outputs":[]})"))
            .findings == Findings{{"boundaries_match", 21, "item" + expected, {20, 21}}});
  }
  SECTION("through a view of it") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"view","inputs":[14],"outputs":[{"t":16,"s":13}]}
      {"kind":"op","phase":"replay","unit":"A","name":"item","inputs":[16],"outputs":[]})"))
            .findings == Findings{{"boundaries_match", 22, "item" + expected, {20, 22}}});
  }
  SECTION("and raises") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op_error","phase":"replay","unit":"A","name":"mm","inputs":[14],"type":"RuntimeError"})"))
            .findings ==
        Findings{{"boundaries_match",
                  21,
                  "mm in the replay of A#0 for session g raises on the placeholder of wrapper "
                  "w#0, output 0, of A#0 (event 20), which holds no data; expected the output to "
                  "be kept for the replay, or its consumer to be excluded too",
                  {20, 21}}});
  }
  SECTION("once, however many ops read it") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"item","inputs":[14],"outputs":[]}
      {"kind":"op","phase":"replay","unit":"A","name":"any","inputs":[14],"outputs":[]})"))
            .findings == Findings{{"boundaries_match", 21, "item" + expected, {20, 21}}});
  }
}

TEST_CASE("boundaries_match leaves views and excluded regions to handle placeholders",
          "[invariants][boundaries_match]") {
  SECTION("a view") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"view","inputs":[14],"outputs":[{"t":16,"s":13}]})"))
            .findings == no_findings);
  }
  SECTION("another wrapper gets it") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"wrapper_enter","phase":"replay","frame":1,"wrapper":"v","call":0,"exec":"replay","skipped":true,"inputs":[{"t":14,"s":13,"path":"arg0"}]}
      {"kind":"wrapper_exit","phase":"replay","frame":1,"wrapper":"v","call":0,"exec":"replay","ended_by":"return","outputs":[14]})"))
            .findings == no_findings);
  }
  SECTION("what a hook does with it") {
    CHECK(
        checked(
            read_in_replay(
                R"({"kind":"op","phase":"replay","unit":"A","name":"clone","internal":"repack","inputs":[14],"outputs":[{"t":15,"s":15}]})"))
            .findings == no_findings);
  }
  SECTION("the storage lives again as something else") {
    CHECK(checked(read_in_replay(R"({"kind":"storage_free","storage":13}
      {"kind":"op","phase":"replay","unit":"A","name":"cos","inputs":[],"internal":"pack","outputs":[{"t":15,"s":13}]}
      {"kind":"op","phase":"replay","unit":"A","name":"item","inputs":[15],"outputs":[]})"))
              .findings == no_findings);
  }
  SECTION("the output was kept") {
    CHECK(
        checked(
            with(
                sound, R"(  {"kind":"unit_end","phase":"replay")",
                R"({"kind":"op","phase":"replay","unit":"A","name":"item","inputs":[2],"outputs":[]}
  {"kind":"unit_end","phase":"replay")"))
            .findings == no_findings);
  }
}

TEST_CASE("boundaries_match names a slot that is filled from a placeholder",
          "[invariants][boundaries_match]") {
  const std::string forward =
      without_output.substr(0, without_output.find(R"(  {"kind":"unit_begin","phase":"replay")"));
  const std::string replay = without_output.substr(forward.size());
  const std::string what =
      " is filled in the replay of A#0 for session g from the placeholder of wrapper w#0, output "
      "0, of A#0 (event 21), which holds no data; expected the output to be kept for the replay, "
      "or its consumer to be excluded too";
  const auto filled = [&](const std::string& pack, const std::string& fill) {
    return checked(forward + pack + "\n" +
                   with(replay, R"(  {"kind":"unit_end","phase":"replay")",
                        fill + "\n" + R"(  {"kind":"unit_end","phase":"replay")"));
  };
  SECTION("of the region around") {
    CHECK(
        filled(
            R"({"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed","tensor":{"t":2,"s":2}})",
            R"({"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["session","g"],"tensor":{"t":14,"s":13}})")
            .findings == Findings{{"boundaries_match", 22, "slot A.1 of A#0" + what, {21, 22}}});
  }
  SECTION("of another excluded region") {
    CHECK(
        filled(
            R"({"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x1","held":"slot","role":"excl_input","wrapper":"v","call":0,"path":"arg0","tensor":{"t":2,"s":2}})",
            R"({"kind":"slot_fill","phase":"replay","frame":1,"slot":"x1","wrapper":"v","call":0,"path":"arg0","tensor":{"t":14,"s":13}})")
            .findings == Findings{{"boundaries_match",
                                   22,
                                   "slot x1 of wrapper v#0, input arg0, of A#0" + what,
                                   {21, 22}}});
  }
  SECTION("but not one that is a boundary's save in both") {
    CHECK(
        filled(
            R"({"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed","boundary":true})",
            R"({"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["session","g"],"boundary":true,"tensor":{"t":14,"s":13}})")
            .findings == no_findings);
  }
}

TEST_CASE("boundaries_match takes the word of a placeholder_read, in any phase",
          "[invariants][boundaries_match]") {
  SECTION("of one that was made in the trace") {
    CHECK(checked(without_output +
                  R"({"kind":"placeholder_read","phase":"backward","tensor":{"t":14,"s":13}})")
              .findings ==
          Findings{{"boundaries_match",
                    22,
                    "the placeholder of wrapper w#0, output 0, of A#0 (event 20) is read in "
                    "backward as data; expected the output to be kept for the replay, or its "
                    "consumer to be excluded too",
                    {20, 22}}});
  }
  SECTION("of another") {
    CHECK(
        checked(
            R"({"kind":"placeholder_read","phase":"forward","frame":1,"wrapper":"w","call":2,"leaf":1})")
            .findings ==
        Findings{{"boundaries_match",
                  1,
                  "the placeholder of wrapper w#2, output 1, of frame 1 is read in forward as "
                  "data; expected the output to be kept for the replay, or its consumer to be "
                  "excluded too",
                  {1}}});
  }
}

TEST_CASE("boundaries_match knows placeholders of torch_remat", "[invariants][boundaries_match]") {
  const std::string made =
      R"({"kind":"remat_placeholder","phase":"replay","region":"r","output":0,"tensor":{"t":1,"s":1,"shape":[4]}})";
  CHECK(checked(made +
                R"(
    {"kind":"op","phase":"replay","name":"view","inputs":[1],"outputs":[{"t":2,"s":1}]})")
            .findings == no_findings);
  CHECK(checked(made +
                R"(
    {"kind":"op","phase":"replay","name":"sum","inputs":[1],"outputs":[{"t":2,"s":2}]})")
            .findings ==
        Findings{{"boundaries_match",
                  2,
                  "sum in replay reads the placeholder of region r, output 0 (event 1), which "
                  "holds no data; expected the output to be kept for the replay, or its consumer "
                  "to be excluded too",
                  {1, 2}}});
}
