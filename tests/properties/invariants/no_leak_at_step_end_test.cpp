#include "properties/invariants/no_leak_at_step_end.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// The header of a trace that a program of ours wrote: there is no caller that could hold anything.
const std::string simulated = R"(
  {"kind":"header","format":"ckpt-trace","version":1,"producer":"simulator"}
)";
/// That of a real system's recording: a caller holds what it likes.
const std::string recorded = R"(
  {"kind":"header","format":"ckpt-trace","version":1,"producer":"recorder"}
)";
const std::string opening = R"(
  {"kind":"step_begin","phase":"setup","step":0}
)";
const std::string closing = R"(
  {"kind":"step_end","phase":"setup","step":0}
)";
const std::string made = R"(
  {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8,"name":"y"}]}
)";
const std::string released = R"(
  {"kind":"storage_free","phase":"setup","storage":1}
)";
const std::string packed = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":1,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":1,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed"}
  {"kind":"holder_free","phase":"backward","slot":"A.1","frame":1}
)";

}  // namespace

TEST_CASE("no_leak_at_step_end names a storage that the step leaves behind",
          "[invariants][no_leak_at_step_end]") {
  SECTION("made by an op") {
    CHECK(
        checked(opening + made + closing).findings ==
        Findings{
            {"no_leak_at_step_end",
             3,
             "the step ends and 1 thing of it is still owned: storage 1 'y' (8 bytes, made by mm), "
             "born at event 2; expected only parameters, gradients and what the caller holds",
             {2, 3}}});
  }
  SECTION("allocated") {
    CHECK(checked(opening + R"({"kind":"storage_alloc","phase":"replay","storage":5,"bytes":1})" +
                  closing)
              .findings ==
          Findings{{"no_leak_at_step_end",
                    3,
                    "the step ends and 1 thing of it is still owned: storage 5 (1 byte), born at "
                    "event 2; expected only parameters, gradients and what the caller holds",
                    {2, 3}}});
  }
  SECTION("and the first three of many") {
    CHECK(checked(opening + R"(
      {"kind":"storage_alloc","phase":"forward","storage":5,"bytes":16,"op":"mm"}
      {"kind":"storage_alloc","phase":"forward","storage":3,"bytes":16,"op":"mm"}
      {"kind":"storage_alloc","phase":"forward","storage":4,"bytes":16,"op":"gelu"}
      {"kind":"storage_alloc","phase":"forward","storage":2,"bytes":16,"op":"mm"}
      {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":16,"op":"mm"}
      {"kind":"storage_free","phase":"backward","storage":2}
    )" + closing)
              .findings ==
          Findings{{"no_leak_at_step_end",
                    8,
                    "the step ends and 4 things of it are still owned: storage 5 (16 bytes, made "
                    "by mm), born at event 2; storage 3 (16 bytes, made by mm), born at event 3; "
                    "storage 4 (16 bytes, made by gelu), born at event 4; and 1 more; expected "
                    "only parameters, gradients and what the caller holds",
                    {2, 3, 4, 8}}});
  }
}

TEST_CASE("no_leak_at_step_end names a slot that the step leaves behind",
          "[invariants][no_leak_at_step_end]") {
  CHECK(
      checked(opening + packed + closing).findings ==
      Findings{{"no_leak_at_step_end",
                5,
                "the step ends and 1 thing of it is still owned: slot A.0 of A#0 (micro-batch 1), "
                "packed at event 2; expected only parameters, gradients and what the caller holds",
                {2, 5}}});
}

TEST_CASE("no_leak_at_step_end names a scope that is not left",
          "[invariants][no_leak_at_step_end]") {
  SECTION("because an early stop jumped over its end") {
    CHECK(
        checked(opening + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",1]}
      {"kind":"scope_enter","phase":"replay","scope":"saved_tensors_hooks"}
      {"kind":"scope_enter","phase":"replay","scope":"saved_tensors_hooks"}
      {"kind":"scope_exit","phase":"replay","scope":"saved_tensors_hooks"}
      {"kind":"early_stop","phase":"replay","unit":"A","frame":1}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"_StopRecomputationError"}
    )" + closing)
            .findings ==
        Findings{{"no_leak_at_step_end",
                  8,
                  "scope saved_tensors_hooks, entered in the replay of A for graph task 1 at event "
                  "4, is still open at the step's end; expected a scope_exit for each scope_enter",
                  {4, 8}}});
  }
  SECTION("on one of two ranks") {
    CHECK(checked(R"(
      {"kind":"scope_enter","rank":0,"phase":"forward","scope":"hooks"}
      {"kind":"scope_enter","rank":1,"phase":"forward","scope":"hooks"}
      {"kind":"scope_exit","rank":0,"phase":"forward","scope":"hooks"}
      {"kind":"step_end","rank":0}
      {"kind":"step_end","rank":1}
    )")
              .findings ==
          Findings{{"no_leak_at_step_end",
                    5,
                    "scope hooks, entered in forward on rank 1 at event 2, is still open at the "
                    "step's end; expected a scope_exit for each scope_enter",
                    {2, 5}}});
  }
}

TEST_CASE("no_leak_at_step_end names a scope that is left but was not entered",
          "[invariants][no_leak_at_step_end]") {
  CHECK(checked(opening + R"(
    {"kind":"scope_enter","phase":"forward","scope":"hooks"}
    {"kind":"scope_exit","phase":"forward","scope":"hooks"}
    {"kind":"scope_exit","phase":"backward","microbatch":0,"scope":"hooks"}
  )" + closing)
            .findings == Findings{{"no_leak_at_step_end",
                                   4,
                                   "scope hooks is left in backward of micro-batch 0 but was not "
                                   "entered; expected a scope_enter before each scope_exit",
                                   {4}}});
}

TEST_CASE("no_leak_at_step_end lets scopes nest and repeat", "[invariants][no_leak_at_step_end]") {
  CHECK(checked(opening + R"(
    {"kind":"scope_enter","phase":"forward","scope":"hooks"}
    {"kind":"scope_enter","phase":"forward","scope":"rng"}
    {"kind":"scope_enter","phase":"forward","scope":"hooks"}
    {"kind":"scope_exit","phase":"forward","scope":"hooks"}
    {"kind":"scope_exit","phase":"forward","scope":"hooks"}
    {"kind":"scope_exit","phase":"forward","scope":"rng"}
  )" + closing)
            .findings.empty());
}

TEST_CASE("no_leak_at_step_end judges a step's own storages without an outside owner",
          "[invariants][no_leak_at_step_end]") {
  SECTION("each role that lies outside") {
    const auto found = [](const std::string& role) {
      return checked(opening +
                     R"({"kind":"storage_alloc","phase":"forward","storage":5,"bytes":8,"role":")" +
                     role + "\"}\n" + closing)
          .findings;
    };
    for (const char* role : {"param", "grad", "grad_output", "input", "buffer", "external"})
      CHECK(found(role).empty());
    CHECK(found("op").size() == 1);
  }
  SECTION("a role that was given later") {
    CHECK(checked(opening + made +
                  R"({"kind":"role","phase":"backward","storage":1,"role":"grad"})" + closing)
              .findings.empty());
  }
  SECTION("what the harness made in setup") {
    CHECK(checked(opening + R"({"kind":"storage_alloc","phase":"setup","storage":5,"bytes":8})" +
                  closing)
              .findings.empty());
  }
  SECTION("what was there before the step") {
    CHECK(checked(made + opening + closing).findings.empty());
  }
  SECTION("what was only read, never allocated") {
    CHECK(
        checked(
            opening +
            R"({"kind":"op","phase":"forward","name":"mm","inputs":[4],"reads":[{"t":4,"s":4,"bytes":8}],"outputs":[]})" +
            closing)
            .findings.empty());
  }
}

TEST_CASE("no_leak_at_step_end judges slots where the trace tells when they die",
          "[invariants][no_leak_at_step_end]") {
  SECTION("packed before the step") {
    CHECK(checked(packed + opening + closing).findings.empty());
  }
  SECTION("of the rank whose step ends") {
    CHECK(checked(simulated + R"(
      {"kind":"pack","rank":0,"phase":"forward","slot":"a","held":"saved","role":"plain"}
      {"kind":"pack","rank":1,"phase":"forward","slot":"b","held":"saved","role":"plain"}
      {"kind":"holder_free","rank":0,"phase":"backward","slot":"a"}
      {"kind":"step_end","rank":0}
      {"kind":"holder_free","rank":1,"phase":"backward","slot":"b"}
      {"kind":"step_end","rank":1}
    )")
              .findings.empty());
  }
  SECTION("no holder_free anywhere") {
    CHECK(
        checked(
            opening +
            R"({"kind":"pack","phase":"forward","slot":"A.0","held":"placeholder","role":"checkpointed"})" +
            closing)
            .findings.empty());
  }
  SECTION("a region's saved input has no recorded owner") {
    CHECK(checked(opening + R"(
      {"kind":"pack","phase":"forward","slot":"R.in","role":"remat_saved_input","region":"R"}
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain"}
      {"kind":"holder_free","phase":"backward","slot":"p"}
    )" + closing)
              .findings.empty());
  }
}

TEST_CASE("no_leak_at_step_end gives the caller time to let go of what it holds",
          "[invariants][no_leak_at_step_end]") {
  SECTION("until the next step begins") {
    CHECK(checked(opening + made + closing + released + opening + closing).findings.empty());
    CHECK(
        checked(opening + made + closing + opening + released + closing).findings ==
        Findings{
            {"no_leak_at_step_end",
             3,
             "the step ends and 1 thing of it is still owned: storage 1 'y' (8 bytes, made by mm), "
             "born at event 2; expected only parameters, gradients and what the caller holds",
             {2, 3}}});
  }
  SECTION("until the next step ends, where no beginnings are recorded") {
    CHECK(checked(made + closing + released + closing).findings.empty());
  }
  SECTION("until the trace ends") {
    CHECK(checked(opening + made + closing + released).findings.empty());
    CHECK(checked(opening + packed + closing + R"({"kind":"holder_free","slot":"A.0","frame":1})")
              .findings.empty());
  }
  SECTION("a simulated trace has no caller") {
    CHECK(
        checked(simulated + opening + made + closing + released).findings ==
        Findings{
            {"no_leak_at_step_end",
             3,
             "the step ends and 1 thing of it is still owned: storage 1 'y' (8 bytes, made by mm), "
             "born at event 2; expected only parameters, gradients and what the caller holds",
             {2, 3}}});
  }
  SECTION("a role that is given late comes in time") {
    CHECK(checked(opening + made + closing + R"({"kind":"role","storage":1,"role":"external"})")
              .findings.empty());
  }
}

TEST_CASE("no_leak_at_step_end lets the caller of a recorded step keep gradients",
          "[invariants][no_leak_at_step_end]") {
  const std::string gradient = R"(
    {"kind":"op","phase":"backward","name":"mm_backward","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8,"name":"g"}]}
  )";
  CHECK(checked(recorded + opening + gradient + closing).findings.empty());
  CHECK(
      checked(recorded + opening +
              R"({"kind":"storage_alloc","phase":"optimizer","storage":3,"bytes":8,"op":"adam"})" +
              closing)
          .findings.empty());
  SECTION("of each phase of a backward") {
    const auto found = [](const std::string& phase) {
      return checked(recorded + opening +
                     R"({"kind":"storage_alloc","storage":3,"bytes":8,"op":"mm","phase":")" +
                     phase + "\"}\n" + closing)
          .findings;
    };
    for (const char* phase : {"backward", "backward_input", "backward_weight"})
      CHECK(found(phase).empty());
    CHECK(found("forward").size() == 1);
  }
  SECTION("told by any field that a recorder gives the header") {
    const auto found = [&](const std::string& field) {
      return checked(R"({"kind":"header","format":"ckpt-trace","version":1,)" + field + "}" +
                     opening + gradient + closing)
          .findings;
    };
    for (const char* field : {R"("torch":"2.9")", R"("framework":"mindspore")", R"("ts_ns":5)"})
      CHECK(found(field).empty());
  }
  SECTION("but not in a trace that a hand or a program of ours wrote") {
    CHECK(checked(opening + gradient + closing).findings.size() == 1);
    CHECK(checked(simulated + opening + gradient + closing).findings ==
          Findings{{"no_leak_at_step_end",
                    3,
                    "the step ends and 1 thing of it is still owned: storage 2 'g' (8 bytes, made "
                    "by mm_backward), born at event 2; expected only parameters, gradients and "
                    "what the caller holds",
                    {2, 3}}});
  }
  SECTION("but not what a slot has held") {
    CHECK(checked(recorded + opening + gradient + R"(
      {"kind":"pack","phase":"backward","slot":"p","held":"saved","role":"plain","tensor":{"t":2,"s":2}}
    )" + closing)
              .findings ==
          Findings{{"no_leak_at_step_end",
                    4,
                    "the step ends and 1 thing of it is still owned: storage 2 'g' (8 bytes, made "
                    "by mm_backward), born at event 2; expected only parameters, gradients and "
                    "what the caller holds",
                    {2, 4}}});
  }
  SECTION("but not what a replay made") {
    CHECK(checked(recorded + opening + R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",1]}
      {"kind":"op","phase":"replay","name":"mm","inputs":[],"outputs":[{"t":2,"s":2,"bytes":8}]}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
    )" + closing)
              .findings ==
          Findings{
              {"no_leak_at_step_end",
               5,
               "the step ends and 1 thing of it is still owned: storage 2 (8 bytes, made by mm), "
               "born at event 3; expected only parameters, gradients and what the caller holds",
               {3, 5}}});
  }
  SECTION("but not a storage of which nothing tells what made it") {
    CHECK(checked(recorded + opening +
                  R"({"kind":"storage_alloc","phase":"backward","storage":3,"bytes":8})" + closing)
              .findings ==
          Findings{{"no_leak_at_step_end",
                    3,
                    "the step ends and 1 thing of it is still owned: storage 3 (8 bytes), born at "
                    "event 2; expected only parameters, gradients and what the caller holds",
                    {2, 3}}});
  }
}

TEST_CASE("no_leak_at_step_end asks each rank at its own end",
          "[invariants][no_leak_at_step_end]") {
  const std::string two_ranks = R"(
    {"kind":"storage_alloc","rank":0,"phase":"forward","storage":1,"bytes":8}
    {"kind":"storage_alloc","rank":1,"phase":"forward","storage":2,"bytes":8}
    {"kind":"storage_free","rank":0,"phase":"backward","storage":1}
    {"kind":"step_end","rank":0}
  )";
  CHECK(checked(two_ranks + R"(
    {"kind":"storage_free","rank":1,"phase":"backward","storage":2}
    {"kind":"step_end","rank":1}
  )")
            .findings.empty());
  CHECK(checked(two_ranks + R"(
    {"kind":"step_end","rank":1}
  )")
            .findings ==
        Findings{{"no_leak_at_step_end",
                  5,
                  "the step ends and 1 thing of it is still owned: storage 2 (8 bytes), born at "
                  "event 2; expected only parameters, gradients and what the caller holds",
                  {2, 5}}});
}

TEST_CASE("no_leak_at_step_end says what it lacks", "[invariants][no_leak_at_step_end]") {
  CHECK(needs(checked(opening + made), "no_leak_at_step_end") == "a step_end event");
  CHECK(needs(checked(opening + closing), "no_leak_at_step_end").empty());
  SECTION("storages without lifetimes") {
    const Verdict verdict = checked(
        R"({"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_free"]})" +
        opening + made + closing);
    CHECK(verdict.findings.empty());
    CHECK(needs(verdict, "no_leak_at_step_end") ==
          "storage_alloc and storage_free events, which the header says are not recorded");
  }
  SECTION("a run that stopped") {
    const Verdict verdict = checked(opening + made + R"(
      {"kind":"scope_enter","phase":"forward","scope":"hooks"}
      {"kind":"error","phase":"forward","type":"RuntimeError"}
    )" + closing);
    CHECK(verdict.findings.empty());
    CHECK(needs(verdict, "no_leak_at_step_end") == "a step that ends: the run stopped at event 4");
  }
}
