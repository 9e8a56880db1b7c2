#include "properties/invariants/unpack_follows_replay.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Forward of region A, micro-batch 0, saves two tensors and keeps neither: events 1 and 2.
const std::string forward = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed"}
)";

}  // namespace

TEST_CASE("unpack_follows_replay names a placeholder that nothing has filled",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","g1"]}
  )");
  CHECK(verdict.findings ==
        Findings{{"unpack_follows_replay",
                  3,
                  "slot A.0 of A#0 (micro-batch 0) is read in backward of micro-batch 0 by session "
                  "g1, but nothing has filled it: since its pack it holds a placeholder; expected "
                  "a replay or a reload of the same session before the read",
                  {1, 3}}});
}

TEST_CASE("unpack_follows_replay alone tells an empty slot, whatever the read hands out",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(R"(
    {"kind":"pack","phase":"forward","slot":"p","held":"placeholder","role":"plain","tensor":{"t":1,"s":1,"shape":[4],"value":1}}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"unpack","phase":"backward","slot":"p","tensor":{"t":2,"s":2,"shape":[5],"value":2}}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "unpack_follows_replay");
}

TEST_CASE("unpack_follows_replay says so where the trace tells no session",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"unpack","slot":"A.0"}
  )");
  CHECK(verdict.findings ==
        Findings{{"unpack_follows_replay",
                  3,
                  "slot A.0 of A#0 (micro-batch 0) is read outside any phase, but nothing has "
                  "filled it: since its pack it holds a placeholder; expected a replay or a reload "
                  "of the same session before the read",
                  {1, 3}}});
}

TEST_CASE("unpack_follows_replay does not take the fill of another session",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["session","g1"]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["session","g1"]}
    {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":7}
  )");
  CHECK(verdict.findings ==
        Findings{{"unpack_follows_replay",
                  5,
                  "slot A.0 of A#0 (micro-batch 0) is read in backward by graph task 7, but only "
                  "session g1 has filled it: since its pack it holds a placeholder; expected a "
                  "replay or a reload of the same session before the read",
                  {1, 4, 5}}});
}

TEST_CASE("unpack_follows_replay names an offloaded slot that was not loaded again",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(R"(
    {"kind":"pack","phase":"forward","unit":"L","slot":"L.0","held":"offloaded","role":"plain"}
    {"kind":"unpack","phase":"backward","slot":"L.0","gid":["graph_task",3]}
  )");
  CHECK(verdict.findings ==
        Findings{{"unpack_follows_replay",
                  2,
                  "slot L.0 of L is read in backward by graph task 3, but nothing has filled it: "
                  "since its pack it holds nothing on the device; expected a replay or a reload of "
                  "the same session before the read",
                  {1, 2}}});
}

TEST_CASE("unpack_follows_replay names a slot that an early stop came before",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["group",2]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["group",2]}
    {"kind":"early_stop","phase":"replay","unit":"A","frame":1,"gid":["group",2],"after_packs":1,"of":2}
    {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"_StopRecomputationError"}
    {"kind":"unpack","phase":"backward_input","microbatch":0,"slot":"A.0","gid":["group",2]}
    {"kind":"unpack","phase":"backward_weight","microbatch":0,"slot":"A.1","gid":["group",2]}
  )");
  CHECK(verdict.findings ==
        Findings{{"unpack_follows_replay",
                  8,
                  "slot A.1 of A#0 (micro-batch 0) is read in backward_weight of micro-batch 0 by "
                  "group 2, but nothing has filled it: since its pack it holds a placeholder; "
                  "expected a replay or a reload of the same session before the read",
                  {2, 8}}});
}

TEST_CASE("unpack_follows_replay wants a region's saved input rebuilt in the same session",
          "[invariants][unpack_follows_replay]") {
  const std::string saved = R"(
    {"kind":"pack","phase":"forward","slot":"R.in","role":"remat_saved_input","region":"R","path":"[0]"}
    {"kind":"remat_rederive","phase":"replay","region":"R","gid":["session","g1"]}
  )";
  CHECK(checked(saved + R"(
    {"kind":"unpack","phase":"backward","slot":"R.in","gid":["session","g1"]}
  )")
            .findings.empty());
  CHECK(checked(saved + R"(
    {"kind":"unpack","phase":"backward","slot":"R.in","gid":["session","g2"]}
  )")
            .findings ==
        Findings{{"unpack_follows_replay",
                  3,
                  "slot R.in of region R is read in backward by session g2, but nothing has filled "
                  "it: since its pack it holds a reference to be rebuilt; expected a replay or a "
                  "reload of the same session before the read",
                  {1, 3}}});
  CHECK(checked(saved + R"(
    {"kind":"session_clear","gid":["session","g1"]}
    {"kind":"unpack","phase":"backward","slot":"R.in","gid":["session","g1"]}
  )")
            .findings.size() == 1);
}

TEST_CASE("unpack_follows_replay names an excluded region's input slot that no replay filled",
          "[invariants][unpack_follows_replay]") {
  const std::string packed = R"(
    {"kind":"pack","phase":"forward","frame":1,"wrapper":"w","call":0,"slot":"w.0","role":"excl_input","held":"slot"}
  )";
  CHECK(checked(packed + R"(
    {"kind":"unpack","phase":"backward","slot":"w.0","from":"rederived","graph_task":5}
  )")
            .findings ==
        Findings{{"unpack_follows_replay",
                  2,
                  "slot w.0 of wrapper w#0 is read in backward by graph task 5, but nothing has "
                  "filled it: since "
                  "its pack it holds an empty input slot; expected a replay or a reload of the "
                  "same session before the read",
                  {1, 2}}});
  // A fill that was refused has filled nothing.
  CHECK(checked(packed + R"(
    {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","gid":["graph_task",4],"refused":true}
    {"kind":"unpack","phase":"backward","slot":"w.0","from":"rederived","graph_task":5}
  )")
            .findings.size() == 1);
  // Filled, it is read any number of times, by anybody (X2).
  CHECK(checked(packed + R"(
    {"kind":"slot_fill","phase":"replay","frame":1,"wrapper":"w","slot":"w.0","gid":["graph_task",4]}
    {"kind":"unpack","phase":"backward","slot":"w.0","from":"rederived","graph_task":4}
    {"kind":"unpack","phase":"backward","slot":"w.0","from":"rederived","graph_task":5}
    {"kind":"unpack","phase":"backward","slot":"w.0","from":"rederived","graph_task":5}
  )")
            .findings.empty());
}

TEST_CASE("unpack_follows_replay wants a new fill once the session was cleared",
          "[invariants][unpack_follows_replay]") {
  const std::string cleared = forward + R"(
    {"kind":"repack","phase":"pretrigger","frame":1,"idx":0,"gid":["session","s"]}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
    {"kind":"session_clear","gid":["session","s"]}
  )";
  CHECK(checked(cleared + R"(
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
  )")
            .findings ==
        Findings{{"unpack_follows_replay",
                  6,
                  "slot A.0 of A#0 (micro-batch 0) is read in backward by session s, but nothing "
                  "has filled it: since its pack it holds a placeholder; expected a replay or a "
                  "reload of the same session before the read",
                  {1, 6}}});
  CHECK(checked(cleared + R"(
    {"kind":"repack","phase":"pretrigger","frame":1,"idx":0,"gid":["session","s"]}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
  )")
            .findings.empty());
}

TEST_CASE("unpack_follows_replay judges a refused read where the refusal stands",
          "[invariants][unpack_follows_replay]") {
  SECTION("the request names the session, the refusal need not") {
    const Verdict verdict = checked(forward + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",4]}
      {"kind":"unpack_error","phase":"backward","slot":"A.0","type":"RuntimeError"}
    )");
    CHECK(verdict.findings ==
          Findings{{"unpack_follows_replay",
                    4,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by graph task 4 and "
                    "refused: nothing has filled it since its pack, it holds a placeholder; "
                    "expected a replay or a reload of the same session before the read",
                    {1, 3, 4}}});
  }
  SECTION("a refusal that names a slot is its request where no other stands") {
    const Verdict verdict = checked(forward + R"(
      {"kind":"unpack_error","phase":"backward","slot":"A.0","graph_task":4,"type":"RuntimeError"}
    )");
    CHECK(verdict.findings ==
          Findings{{"unpack_follows_replay",
                    3,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by graph task 4 and "
                    "refused: nothing has filled it since its pack, it holds a placeholder; "
                    "expected a replay or a reload of the same session before the read",
                    {1, 3}}});
  }
}

TEST_CASE("unpack_follows_replay is silent about a refusal that has another reason",
          "[invariants][unpack_follows_replay]") {
  SECTION("a replay since the request raised") {
    CHECK(checked(forward + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",4]}
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",4]}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"ValueError"}
      {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["graph_task",4]}
    )")
              .findings.empty());
  }
  SECTION("the session has filled the slot") {
    CHECK(checked(forward + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",4]}
      {"kind":"repack","phase":"backward","slot":"A.0","gid":["graph_task",4]}
      {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["graph_task",4]}
    )")
              .findings.empty());
  }
  SECTION("it names no slot") {
    CHECK(checked(forward + R"(
      {"kind":"unpack_error","phase":"backward","gid":["graph_task",4]}
    )")
              .findings.empty());
  }
  SECTION("the slot holds its tensor") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
      {"kind":"unpack_begin","phase":"backward","slot":"p","gid":["graph_task",4]}
      {"kind":"unpack_error","phase":"backward","slot":"p","gid":["graph_task",4]}
    )")
              .findings.empty());
  }
}

TEST_CASE("unpack_follows_replay leaves a refusal to the invariant that found its cause",
          "[invariants][unpack_follows_replay]") {
  // The replay could not begin because an input was written: that is all there is to say.
  const Verdict verdict = checked(R"(
    {"kind":"frame_create","phase":"forward","frame":1,"unit":"A","inv":0}
    {"kind":"tensor","t":1,"s":1}
    {"kind":"inputs_save","phase":"forward","frame":1,"tensors":[1]}
    {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",4]}
    {"kind":"inputs_unpack_begin","phase":"backward","frame":1}
    {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["graph_task",4]}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "version_unchanged");
  CHECK(verdict.findings.front().seq == 7);
}

TEST_CASE("unpack_follows_replay leaves a second request to slot_used_once",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"repack","phase":"backward","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["session","s"]}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "slot_used_once");
  CHECK(verdict.findings.front().seq == 6);
}

TEST_CASE("unpack_follows_replay allows every legal order of fill and read",
          "[invariants][unpack_follows_replay]") {
  SECTION("replays under retain_graph: one for each graph task") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",1]}
      {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":1}
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",2]}
      {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":2}
    )")
              .findings.empty());
  }
  SECTION("a group session goes over two phases and two graph tasks") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["group",0],"graph_task":5}
      {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["group",0],"graph_task":5}
      {"kind":"unpack","phase":"backward_input","slot":"A.0","gid":["group",0],"graph_task":5}
      {"kind":"unpack","phase":"backward_weight","slot":"A.1","gid":["group",0],"graph_task":6}
    )")
              .findings.empty());
  }
  SECTION("a read outside any backward is a session of its own") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["adhoc",0]}
      {"kind":"unpack","slot":"A.0","gid":["adhoc",0],"graph_task":-1}
    )")
              .findings.empty());
  }
  SECTION("a reload outside any replay fills an offloaded slot") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"L.0","held":"offloaded","role":"plain"}
      {"kind":"repack","phase":"backward","slot":"L.0","gid":["graph_task",3]}
      {"kind":"unpack","phase":"backward","slot":"L.0","gid":["graph_task",3]}
    )")
              .findings.empty());
  }
  SECTION("slots are no stack: the first filled may be read first") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["session","g"]}
      {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["session","g"]}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","g"]}
      {"kind":"unpack","phase":"backward","slot":"A.1","gid":["session","g"]}
    )")
              .findings.empty());
  }
  SECTION("a fill whose session was not recorded may be the reader's") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","frame":1,"idx":0}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","g"]}
    )")
              .findings.empty());
  }
  SECTION(
      "a kept tensor needs no replay, nor does a slot whose kind of holding is not recorded or not "
      "known") {
    CHECK(checked(R"(
      {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
      {"kind":"pack","phase":"forward","slot":"q","role":"plain","tensor":{"t":1,"s":1}}
      {"kind":"pack","phase":"forward","slot":"r","held":"compressed","role":"plain","tensor":{"t":1,"s":1}}
      {"kind":"unpack","phase":"backward","slot":"p"}
      {"kind":"unpack","phase":"backward","slot":"q"}
      {"kind":"unpack","phase":"backward","slot":"r"}
      {"kind":"unpack","phase":"backward"}
    )")
              .findings.empty());
  }
}

TEST_CASE("unpack_follows_replay says that it needs slots that hold no tensor",
          "[invariants][unpack_follows_replay]") {
  const Verdict verdict = checked(R"(
    {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
    {"kind":"unpack","phase":"backward","slot":"p"}
  )");
  CHECK(needs(verdict, "unpack_follows_replay") ==
        "slots that hold no tensor: pack events with held placeholder, offloaded or slot");
  CHECK(needs(checked(forward), "unpack_follows_replay").empty());
}
