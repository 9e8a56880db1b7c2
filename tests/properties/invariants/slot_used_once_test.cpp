#include "properties/invariants/slot_used_once.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Forward of region A saves one tensor and does not keep it: event 1.
const std::string forward = R"(
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
)";

/// … and session s fills it and reads it: events 2 and 3.
const std::string forward_and_read = forward + R"(
  {"kind":"repack","phase":"replay","slot":"A.0","gid":["session","s"]}
  {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"]}
)";

}  // namespace

TEST_CASE("slot_used_once names a slot that one session fills twice",
          "[invariants][slot_used_once]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",4]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",4]}
    {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
    {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",4]}
    {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["graph_task",4]}
  )");
  CHECK(verdict.findings ==
        Findings{{"slot_used_once",
                  6,
                  "slot A.0 of A#0 (micro-batch 0) is filled in the replay of A#0 (micro-batch 0) "
                  "for graph task 4, but graph task 4 filled it before, at event 3; expected one "
                  "fill for each session",
                  {3, 6}}});
}

TEST_CASE("slot_used_once names a slot that one session reads twice",
          "[invariants][slot_used_once]") {
  SECTION("by name") {
    CHECK(
        checked(forward_and_read + R"(
      {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"]}
    )")
            .findings ==
        Findings{{"slot_used_once",
                  4,
                  "slot A.0 of A#0 (micro-batch 0) is asked for in backward of micro-batch 0 by "
                  "session s again, after event 3; a session that does not retain gets a slot once",
                  {3, 4}}});
  }
  SECTION("dx and dw under one graph task") {
    CHECK(
        checked(forward + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",8]}
      {"kind":"unpack","phase":"backward_input","microbatch":0,"slot":"A.0","graph_task":8}
      {"kind":"unpack","phase":"backward_weight","microbatch":0,"slot":"A.0","graph_task":8}
    )")
            .findings ==
        Findings{
            {"slot_used_once",
             4,
             "slot A.0 of A#0 (micro-batch 0) is asked for in backward_weight of micro-batch 0 by "
             "graph task 8 again, after event 3; a session that does not retain gets a slot once",
             {3, 4}}});
  }
}

TEST_CASE("slot_used_once counts requests, also those that the real system refused",
          "[invariants][slot_used_once]") {
  SECTION("the second request begins") {
    CHECK(checked(forward_and_read + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["session","s"]}
      {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["session","s"]}
    )")
              .findings ==
          Findings{{"slot_used_once",
                    4,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by session s again, "
                    "after event 3; a session that does not retain gets a slot once",
                    {3, 4}}});
  }
  SECTION("a refusal that names a slot is a request where no other stands") {
    CHECK(checked(forward_and_read + R"(
      {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["session","s"]}
    )")
              .findings ==
          Findings{{"slot_used_once",
                    4,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by session s again, "
                    "after event 3; a session that does not retain gets a slot once",
                    {3, 4}}});
  }
}

TEST_CASE("slot_used_once allows further reads while the session retains",
          "[invariants][slot_used_once]") {
  const std::string retained = forward + R"(
    {"kind":"session_open","gid":["session","s"],"retain":true}
    {"kind":"repack","phase":"pretrigger","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack","phase":"backward_input","slot":"A.0","gid":["session","s"]}
    {"kind":"unpack","phase":"backward_weight","slot":"A.0","gid":["session","s"]}
  )";
  CHECK(checked(retained).findings.empty());
  SECTION("until it is closed without") {
    CHECK(checked(retained + R"(
      {"kind":"session_close","gid":["session","s"],"retain":true}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
      {"kind":"session_close","gid":["session","s"],"retain":false}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
    )")
              .findings ==
          Findings{{"slot_used_once",
                    9,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by session s again, "
                    "after event 7; a session that does not retain gets a slot once",
                    {7, 9}}});
  }
  SECTION("or cleared: what comes then is another session's") {
    CHECK(checked(retained + R"(
      {"kind":"session_clear","gid":["session","s"]}
      {"kind":"repack","phase":"pretrigger","slot":"A.0","gid":["session","s"]}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
    )")
              .findings.empty());
    CHECK(checked(retained + R"(
      {"kind":"session_clear","gid":["session","s"]}
      {"kind":"repack","phase":"pretrigger","slot":"A.0","gid":["session","s"]}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"]}
    )")
              .findings ==
          Findings{{"slot_used_once",
                    9,
                    "slot A.0 of A#0 (micro-batch 0) is asked for in backward by session s again, "
                    "after event 8; a session that does not retain gets a slot once",
                    {8, 9}}});
  }
}

TEST_CASE("slot_used_once allows a further read after one that retained",
          "[invariants][slot_used_once]") {
  const std::string retained = forward + R"(
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",1]}
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",1]}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",1],"retained":true}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",1],"retained":false}
  )";
  CHECK(checked(retained).findings.empty());
  CHECK(checked(retained + R"(
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",1],"retained":false}
  )")
            .findings ==
        Findings{{"slot_used_once",
                  6,
                  "slot A.0 of A#0 (micro-batch 0) is asked for in backward by graph task 1 again, "
                  "after event 5; a session that does not retain gets a slot once",
                  {5, 6}}});
}

TEST_CASE("slot_used_once wants the storage handed out that was filled in",
          "[invariants][slot_used_once]") {
  const std::string filled = forward + R"(
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["session","s"],"tensor":{"t":1,"s":1,"name":"a"}}
  )";
  CHECK(checked(filled + R"(
    {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"],"tensor":{"t":2,"s":2}}
  )")
            .findings ==
        Findings{{"slot_used_once",
                  3,
                  "slot A.0 of A#0 (micro-batch 0) hands out storage 2 in backward of micro-batch "
                  "0, but storage 1 was filled in at event 2; expected that value",
                  {2, 3}}});
  // What was filled in may be gone by then: it is not what is read.
  CHECK(checked(filled + R"(
    {"kind":"storage_free","phase":"backward","storage":1}
    {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"],"tensor":{"t":2,"s":2}}
  )")
            .findings.size() == 1);
  // A framework may wrap the tensor: another object on the same storage.
  CHECK(checked(filled + R"(
    {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"],"tensor":{"t":2,"s":1}}
  )")
            .findings.empty());
  // A recorder that sees no storages gives every tensor one of its own (M1).
  CHECK(
      checked(
          R"({"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_alloc"]})" +
          filled + R"(
    {"kind":"unpack","phase":"backward","microbatch":0,"slot":"A.0","gid":["session","s"],"tensor":{"t":2,"s":2}}
  )")
          .findings.empty());
}

TEST_CASE("slot_used_once wants a kept tensor's storage handed out",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","unit":"A","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
    {"kind":"unpack","phase":"backward","slot":"p","tensor":{"t":2,"s":2}}
  )")
            .findings == Findings{{"slot_used_once",
                                   2,
                                   "slot p of A hands out storage 2 in backward, but storage 1 was "
                                   "kept at event 1; expected that value",
                                   {1, 2}}});
}

TEST_CASE("slot_used_once names a field that is filled again while unread",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"field_put","phase":"forward","field":"ctx.mask","key":"mb0"}
    {"kind":"field_put","phase":"forward","microbatch":1,"field":"ctx.mask","key":"mb1"}
    {"kind":"field_get","phase":"backward","field":"ctx.mask","key":"mb1"}
    {"kind":"field_get","phase":"backward","field":"ctx.mask","key":"mb0"}
  )")
            .findings ==
        Findings{{"slot_used_once",
                  2,
                  "field ctx.mask is filled again for \"mb1\" while what event 1 put there for "
                  "\"mb0\" is unread; it holds one entry, so that one is lost",
                  {1, 2}}});
}

TEST_CASE("slot_used_once names a field that is read as another's",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"field_put","phase":"forward","field":"ctx.mask","key":"mb0"}
    {"kind":"field_get","phase":"backward","microbatch":1,"field":"ctx.mask","key":"mb1"}
  )")
            .findings == Findings{{"slot_used_once",
                                   2,
                                   "field ctx.mask is read for \"mb1\", but holds what event 1 put "
                                   "there for \"mb0\"; expected the entry of the same key",
                                   {1, 2}}});
}

TEST_CASE("slot_used_once allows fields that are read between two fills, and one on each rank",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"field_put","rank":0,"phase":"forward","field":"ctx.mask","key":"mb0"}
    {"kind":"field_put","rank":1,"phase":"forward","field":"ctx.mask","key":"mb0"}
    {"kind":"field_get","rank":0,"phase":"backward","field":"ctx.mask","key":"mb0"}
    {"kind":"field_put","rank":0,"phase":"forward","field":"ctx.mask","key":"mb1"}
    {"kind":"field_get","rank":0,"phase":"backward","field":"ctx.mask"}
    {"kind":"field_get","rank":0,"phase":"backward","field":"ctx.other","key":"mb1"}
  )")
            .findings.empty());
}

TEST_CASE("slot_used_once allows a fill and a read for each session",
          "[invariants][slot_used_once]") {
  SECTION("two graph tasks under retain_graph") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",1]}
      {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":1}
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",2]}
      {"kind":"unpack","phase":"backward","slot":"A.0","graph_task":2}
    )")
              .findings.empty());
  }
  SECTION("single reads outside any backward") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["adhoc",1]}
      {"kind":"unpack","slot":"A.0","gid":["adhoc",1]}
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["adhoc",2]}
      {"kind":"unpack","slot":"A.0","gid":["adhoc",2]}
    )")
              .findings.empty());
  }
  SECTION("a request and its answer are one") {
    CHECK(checked(forward + R"(
      {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",1]}
      {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",1]}
      {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",1]}
    )")
              .findings.empty());
  }
  SECTION("where no session was recorded nothing is certain") {
    CHECK(checked(forward + R"(
      {"kind":"repack","phase":"replay","slot":"A.0"}
      {"kind":"unpack","phase":"backward","slot":"A.0"}
      {"kind":"repack","phase":"replay","slot":"A.0"}
      {"kind":"unpack","phase":"backward","slot":"A.0"}
    )")
              .findings.empty());
  }
  SECTION("a slot that is packed anew begins anew") {
    CHECK(checked(forward_and_read + forward_and_read).findings.empty());
  }
}

TEST_CASE(
    "slot_used_once knows that requests nest: a replay may ask for the slot that it is to fill",
    "[invariants][slot_used_once]") {
  CHECK(checked(forward + R"(
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",1]}
    {"kind":"unpack_begin","phase":"replay","slot":"A.0","gid":["adhoc",1]}
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["adhoc",1]}
    {"kind":"unpack","phase":"replay","slot":"A.0","gid":["adhoc",1]}
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["graph_task",1]}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["graph_task",1]}
  )")
            .findings.empty());
}

TEST_CASE("slot_used_once tells a second request once, whatever it hands out",
          "[invariants][slot_used_once]") {
  const Verdict verdict = checked(forward + R"(
    {"kind":"repack","phase":"replay","slot":"A.0","gid":["session","s"],"tensor":{"t":1,"s":1,"shape":[4],"value":1}}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"],"tensor":{"t":1,"s":1,"shape":[4],"value":1}}
    {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","s"],"tensor":{"t":1,"s":1,"shape":[5],"value":2}}
  )");
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings.front().invariant == "slot_used_once");
}

TEST_CASE("slot_used_once lets a kept tensor be read any number of times",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","slot":"p","held":"saved","role":"plain","tensor":{"t":1,"s":1}}
    {"kind":"unpack","phase":"backward","slot":"p","gid":["graph_task",1]}
    {"kind":"unpack","phase":"backward","slot":"p","gid":["graph_task",1]}
    {"kind":"unpack","phase":"backward","slot":"p","gid":["graph_task",1]}
  )")
            .findings.empty());
}

TEST_CASE("slot_used_once says that it needs slots or fields in use",
          "[invariants][slot_used_once]") {
  CHECK(needs(checked(forward), "slot_used_once") ==
        "unpack, unpack_begin or repack events, or field_put and field_get");
  CHECK(needs(checked(forward_and_read), "slot_used_once").empty());
  CHECK(needs(checked(R"({"kind":"field_put","field":"f"})"), "slot_used_once").empty());
}
