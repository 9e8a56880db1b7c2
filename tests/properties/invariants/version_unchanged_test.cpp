#include "properties/invariants/version_unchanged.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

const std::string written = R"(
  {"kind":"mutate","phase":"optimizer","tensor":1,"storage":1,"name":"add_"}
)";

/// A kept slot: event 1.
const std::string kept = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1,"name":"y"}}
)";

/// Forward of region A keeps its input x on storage 1, reads it and makes storage 3: events 1 to 8.
const std::string forward = R"(
  {"kind":"frame_create","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1}
  {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8,"name":"x"}
  {"kind":"tensor","phase":"forward","t":1,"s":1}
  {"kind":"inputs_save","phase":"forward","frame":1,"tensors":[1]}
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"forward"}
  {"kind":"storage_alloc","phase":"forward","storage":3,"bytes":8}
  {"kind":"op","phase":"forward","unit":"A","inv":0,"microbatch":0,"name":"mm","inputs":[1],"reads":[],"outputs":[{"t":3,"s":3,"bytes":8}]}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";
const std::string begun = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
)";
const std::string replayed_mm = R"(
  {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[1],"outputs":[{"t":13,"s":13,"bytes":8}]}
)";
const std::string fetched = R"(
  {"kind":"inputs_unpack_begin","phase":"backward","microbatch":0,"frame":1}
)";

/// Forward of region A saves what it was given, storage 1 made by an op outside: events 1 to 3.
const std::string saves_its_input = R"(
  {"kind":"op","phase":"forward","name":"embed","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8,"name":"x"}]}
  {"kind":"unit_begin","phase":"forward","unit":"A","frame":1,"exec":"forward"}
  {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1}}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";

}  // namespace

TEST_CASE("version_unchanged names a kept slot that was written before its read",
          "[invariants][version_unchanged]") {
  SECTION("once") {
    CHECK(checked(kept + written + R"(
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"p","gid":["graph_task",9]}
    )")
              .findings ==
          Findings{{"version_unchanged",
                    3,
                    "slot p of A#0 (micro-batch 0) is read in backward of micro-batch 0, but "
                    "storage 1 'y', kept at event 1, was written since, at event 2 (version 0 "
                    "then, 1 now); expected no write before the read",
                    {1, 2, 3}}});
  }
  SECTION("three times") {
    CHECK(checked(kept + written + written + written + R"(
      {"kind":"unpack","phase":"backward","slot":"p"}
    )")
              .findings ==
          Findings{{"version_unchanged",
                    5,
                    "slot p of A#0 (micro-batch 0) is read in backward, but storage 1 'y', kept at "
                    "event 1, was written 3 times since, last at event 4 (version 0 then, 3 now); "
                    "expected no write before the read",
                    {1, 4, 5}}});
  }
  SECTION("shown by its id or by its storage alone") {
    CHECK(checked(kept + R"(
      {"kind":"pack","phase":"forward","slot":"q","held":"saved","role":"plain","tensor":{"t":1}}
      {"kind":"pack","phase":"forward","slot":"r","held":"saved","role":"plain","tensor":{"s":1}}
    )" + written + R"(
      {"kind":"unpack","phase":"backward","slot":"q"}
      {"kind":"unpack","phase":"backward","slot":"r"}
    )")
              .findings.size() == 2);
  }
  SECTION("through a view of the storage") {
    CHECK(checked(kept + R"(
      {"kind":"op","phase":"forward","name":"view","inputs":[1],"outputs":[{"t":2,"s":1,"name":"y.view"}]}
      {"kind":"mutate","phase":"forward","tensor":2,"storage":1,"name":"zero_"}
      {"kind":"unpack","phase":"backward","slot":"p"}
    )")
              .findings == Findings{{"version_unchanged",
                                     4,
                                     "slot p of A#0 (micro-batch 0) is read in backward, but "
                                     "storage 1 'y', kept at event 1, was written since, at event "
                                     "3 (version 0 then, 1 now); expected no write before the read",
                                     {1, 3, 4}}});
  }
}

TEST_CASE("version_unchanged names a filled slot that was written before its read",
          "[invariants][version_unchanged]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1}}
    {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",9]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":2,"s":2}}
    {"kind":"mutate","phase":"replay","tensor":2,"storage":2,"name":"relu_"}
    {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
    {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":9}
  )")
            .findings ==
        Findings{
            {"version_unchanged",
             6,
             "slot A.0 of A is read in backward, but storage 2, filled in at event 3, was written "
             "since, at event 4 (version 0 then, 1 now); expected no write before the read",
             {3, 4, 6}}});
}

TEST_CASE("version_unchanged compares a placeholder from its fill on, never from its pack",
          "[invariants][version_unchanged]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1}}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":2,"s":2,"v":3}}
    {"kind":"mutate","phase":"backward","tensor":1,"storage":1}
    {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":9,"tensor":{"t":2,"s":2}}
  )")
            .findings.empty());
}

TEST_CASE("version_unchanged compares a region's inputs when a replay asks for them",
          "[invariants][version_unchanged]") {
  CHECK(checked(forward + fetched).findings.empty());
  const Verdict verdict = checked(forward + written + fetched);
  CHECK(verdict.findings ==
        Findings{{"version_unchanged",
                  10,
                  "the inputs of A#0 (micro-batch 0) are fetched in backward of micro-batch 0, but "
                  "storage 1 'x', kept at event 4, was written since, at event 9 (version 0 then, "
                  "1 now); expected no write before its replays",
                  {4, 9, 10}}});
  SECTION("and does not tell the same write again when the replay reads them") {
    CHECK(checked(forward + written + fetched + begun + replayed_mm).findings == verdict.findings);
  }
}

TEST_CASE("version_unchanged tells a write to a region's input once",
          "[invariants][version_unchanged]") {
  // x is also kept in a slot of its own, and saved as it came in.
  const std::string saved = forward + R"(
    {"kind":"pack","phase":"forward","unit":"A","slot":"p","held":"saved","role":"unit_input","tensor":{"t":1,"s":1}}
    {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1}}
  )" + written + fetched;
  CHECK(checked(saved).findings.size() == 1);
  CHECK(checked(saved + R"({"kind":"unpack","phase":"backward","slot":"p"})").findings.size() == 1);
  CHECK(checked(saved + begun + R"(
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
  )")
            .findings.size() == 1);
  SECTION("and a write to something else for itself") {
    CHECK(
        checked(
            R"({"kind":"pack","phase":"forward","slot":"q","held":"saved","role":"plain","tensor":{"t":5,"s":5}})"
            "\n" +
            saved + R"(
      {"kind":"mutate","phase":"forward","tensor":5,"storage":5}
      {"kind":"unpack","phase":"backward","slot":"q"}
    )")
            .findings.size() == 2);
  }
}

TEST_CASE("version_unchanged leaves inputs that are the caller's slots to those",
          "[invariants][version_unchanged]") {
  // U2: the inner region's input was just packed as a slot of the region around it.
  CHECK(checked(R"(
    {"kind":"frame_create","phase":"forward","unit":"inner","frame":2}
    {"kind":"pack","phase":"forward","unit":"outer","frame":1,"idx":0,"slot":"f1.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1}}
    {"kind":"inputs_save","phase":"forward","frame":2,"tensors":[1]}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"inputs_unpack_begin","phase":"backward","frame":2}
  )")
            .findings.empty());
}

TEST_CASE("version_unchanged compares what a replay reads with forward's first read",
          "[invariants][version_unchanged]") {
  const Verdict verdict = checked(forward + written + begun + replayed_mm);
  CHECK(verdict.findings ==
        Findings{{"version_unchanged",
                  11,
                  "storage 1 'x', which forward read at event 7, is read by mm in the replay of "
                  "A#0 (micro-batch 0) for graph task 9, but was written since, at event 9 "
                  "(version 0 then, 1 now); the replay computes from another value",
                  {7, 9, 11}}});
  SECTION("once for each storage") {
    CHECK(checked(forward + written + begun + replayed_mm + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"view","inputs":[1],"outputs":[{"t":5,"s":1}]}
    )")
              .findings == verdict.findings);
  }
  SECTION("unless the replay wrote it itself before") {
    CHECK(checked(forward + written + begun + R"(
      {"kind":"mutate","phase":"replay","unit":"A","tensor":1,"storage":1,"name":"copy_"}
    )" + replayed_mm)
              .findings.empty());
  }
  SECTION("unless somebody outside owns it") {
    CHECK(checked(R"({"kind":"role","storage":1,"role":"external"})"
                  "\n"
                  R"(
      {"kind":"tensor","phase":"setup","t":1,"s":1}
      {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[1],"outputs":[{"t":3,"s":3,"bytes":8}]}
      {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
      {"kind":"unit_begin","phase":"replay","unit":"A","exec":"replay","gid":["session","g"]}
      {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[1],"outputs":[{"t":4,"s":4,"bytes":8}]}
    )")
              .findings.empty());
  }
  SECTION("unless forward made it") {
    CHECK(checked(forward + R"(
      {"kind":"mutate","phase":"forward","tensor":3,"storage":3}
    )" + begun + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"gelu","inputs":[3],"outputs":[]}
    )")
              .findings.empty());
  }
  SECTION("unless a hook read it") {
    CHECK(checked(forward + written + begun + R"(
      {"kind":"op","phase":"replay","unit":"A","name":"detach","internal":"repack","inputs":[1],"outputs":[{"t":4,"s":1}]}
    )")
              .findings.empty());
  }
}

TEST_CASE("version_unchanged takes forward's first read of a storage that forward itself writes",
          "[invariants][version_unchanged]") {
  // Statistics: forward reads them, then moves them. The replay reads them moved.
  CHECK(checked(R"(
    {"kind":"storage_alloc","phase":"setup","storage":1,"bytes":8,"role":"buffer","name":"mean"}
    {"kind":"tensor","phase":"setup","t":1,"s":1}
    {"kind":"op","phase":"forward","unit":"bn","name":"norm","inputs":[1],"outputs":[]}
    {"kind":"mutate","phase":"forward","unit":"bn","tensor":1,"storage":1,"name":"norm"}
    {"kind":"op","phase":"forward","unit":"bn","name":"print","inputs":[1],"outputs":[]}
    {"kind":"unit_begin","phase":"replay","unit":"bn","exec":"replay","gid":["session","g"]}
    {"kind":"op","phase":"replay","unit":"bn","name":"norm","inputs":[1],"outputs":[]}
  )")
            .findings ==
        Findings{{"version_unchanged",
                  7,
                  "storage 1 'mean', which forward read at event 3, is read by norm in the replay "
                  "of bn for session g, but was written since, at event 4 (version 0 then, 1 now); "
                  "the replay computes from another value",
                  {3, 4, 7}}});
}

TEST_CASE("version_unchanged compares a slot that is filled from the storage it was packed from",
          "[invariants][version_unchanged]") {
  CHECK(checked(saves_its_input + begun + R"(
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
  )")
            .findings.empty());
  CHECK(checked(saves_its_input + written + begun + R"(
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
  )")
            .findings ==
        Findings{{"version_unchanged",
                  7,
                  "slot A.0 of A is filled in the replay of A for graph task 9 from storage 1 'x', "
                  "the one packed at event 3, but that was written since, at event 5 (version 0 "
                  "then, 1 now); the replay saves another value",
                  {3, 5, 7}}});
  // A write before that fill, by the replay itself, is the replay's business.
  CHECK(checked(saves_its_input + written + begun + R"(
    {"kind":"mutate","phase":"replay","unit":"A","tensor":1,"storage":1,"name":"copy_"}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",9],"tensor":{"t":1,"s":1}}
  )")
            .findings.empty());
}

TEST_CASE("version_unchanged lets a storage id be filled again after its release",
          "[invariants][version_unchanged]") {
  // Resharding: gathered, released, gathered anew. References to it are good again.
  CHECK(checked(R"(
    {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8}
    {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
    {"kind":"storage_free","phase":"forward","storage":1}
    {"kind":"storage_alloc","phase":"backward","storage":1,"bytes":8}
    {"kind":"unpack","phase":"backward","slot":"p"}
  )")
            .findings.empty());
  CHECK(checked(R"(
    {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8}
    {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
    {"kind":"storage_free","phase":"forward","storage":1}
    {"kind":"storage_alloc","phase":"backward","storage":1,"bytes":8}
    {"kind":"mutate","phase":"backward","tensor":1,"storage":1}
    {"kind":"unpack","phase":"backward","slot":"p"}
  )")
            .findings ==
        Findings{{"version_unchanged",
                  6,
                  "slot p is read in backward, but storage 1, kept at event 2, was written since, "
                  "at event 5 (version 0 then, 1 now); expected no write before the read",
                  {2, 5, 6}}});
}

TEST_CASE("version_unchanged takes lists of tensors as it takes lists of their ids",
          "[invariants][version_unchanged]") {
  CHECK(checked(R"(
    {"kind":"frame_create","phase":"forward","unit":"A","frame":1}
    {"kind":"inputs_save","phase":"forward","frame":1,"tensors":[{"t":7,"s":1,"name":"x"}]}
  )" + written + fetched)
            .findings.size() == 1);
  CHECK(checked(R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","frame":1,"exec":"forward"}
    {"kind":"sac_decide","phase":"forward","op":"mm","idx":0,"saved":true,"tensors":[{"t":7,"s":1,"name":"y"}]}
    {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
  )" + written + begun +
                R"(
    {"kind":"sac_hit","phase":"replay","op":"mm","idx":0,"tensors":[{"t":1,"s":1}]}
  )")
            .findings.size() == 1);
}

TEST_CASE("version_unchanged forgets what a call read with the call",
          "[invariants][version_unchanged]") {
  // The frame's number is used anew, for a call that reads what was written in between.
  CHECK(checked(forward + R"({"kind":"frame_free","phase":"backward","frame":1})" + "\n" + written +
                R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","inv":1,"frame":1,"exec":"forward"}
    {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[1],"outputs":[{"t":4,"s":4,"bytes":8}]}
    {"kind":"unit_end","phase":"forward","unit":"A","inv":1,"frame":1,"exec":"forward","ended_by":"return"}
  )" + begun + replayed_mm)
            .findings.empty());
}

TEST_CASE("version_unchanged compares what selective checkpointing serves from its cache",
          "[invariants][version_unchanged]") {
  const std::string kept_mm = R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
    {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
    {"kind":"sac_decide","phase":"forward","op":"mm","idx":0,"saved":true,"tensors":[1]}
    {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
  )";
  const std::string served = R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    {"kind":"sac_hit","phase":"replay","op":"mm","idx":0,"tensors":[1]}
  )";
  CHECK(checked(kept_mm + served).findings.empty());
  CHECK(checked(kept_mm + written + served).findings ==
        Findings{{"version_unchanged",
                  7,
                  "the kept output of mm is served in the replay of A#0 for graph task 9, but "
                  "storage 1, kept at event 3, was written since, at event 5 (version 0 then, 1 "
                  "now); expected no write while it is kept",
                  {3, 5, 7}}});
}

TEST_CASE("version_unchanged compares a region's kept output when it is served",
          "[invariants][version_unchanged]") {
  const std::string persisted = R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
    {"kind":"remat_persist","phase":"forward","region":"R","output":0,"tensor":{"t":1,"s":1}}
    {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
  )";
  const std::string served = R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
    {"kind":"remat_serve","phase":"replay","region":"R","output":0,"tensor":{"t":1,"s":1}}
  )";
  CHECK(checked(persisted + served).findings.empty());
  CHECK(checked(persisted + written + served).findings ==
        Findings{{"version_unchanged",
                  6,
                  "the kept output of region R is served in the replay of A#0 for graph task 9, "
                  "but storage 1, kept at event 2, was written since, at event 4 (version 0 then, "
                  "1 now); expected no write while it is kept",
                  {2, 4, 6}}});
}
