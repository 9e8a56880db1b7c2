#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/slot_used_once.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

const std::string sound = excluded_forward + excluded_replay + excluded_reads;

/// Of slot x0, by a replay whose count of calls is `call`.
std::string fill_by(const std::string& session, int call) {
  return with(
             with(
                 R"({"kind":"slot_fill","phase":"replay","frame":1,"slot":"x0","handle":"h0","wrapper":"w","call":CALL,"entry_call":0,"path":"arg0","gid":["session","GID"],"tensor":{"t":11,"s":11}})",
                 "CALL", std::to_string(call)),
             "GID", session) +
         "\n";
}

std::string pop(int call, const std::string& more) {
  return R"(  {"kind":"cache_pop","phase":"replay","frame":1,"wrapper":"w","call":)" +
         std::to_string(call) + more + "}\n";
}

std::string replay_by(const std::string& session, const std::string& body) {
  return R"(  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["session",")" +
         session + "\"]}\n" + body +
         R"(  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"RuntimeError"})"
         "\n";
}

/// Two calls of wrapper w in forward of region A, whose entries are put at events 2 and 3.
const std::string two_entries = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"cache_put","phase":"forward","frame":1,"wrapper":"w","call":1}
  {"kind":"cache_put","phase":"forward","frame":1,"wrapper":"w","call":2}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
)";

}  // namespace

TEST_CASE("slot_used_once lets an excluded region's slot be read any number of times",
          "[invariants][slot_used_once]") {
  CHECK(checked(sound + R"(
    {"kind":"unpack","phase":"backward","slot":"x0","from":"rederived","graph_task":7,"tensor":{"t":12,"s":11}}
    {"kind":"unpack","phase":"backward_weight","slot":"x0","from":"rederived","graph_task":8,"tensor":{"t":12,"s":11}}
  )")
            .findings == no_findings);
}

TEST_CASE("slot_used_once holds an excluded region's slot to the call and input it was packed for",
          "[invariants][slot_used_once]") {
  const std::string what =
      "slot x0 of wrapper w#0, input arg0, of A#0 is filled in the replay of A#0 for session g for "
      "wrapper ";
  const std::string why = "; a slot serves the call and the input that it was packed for";
  const auto complaint = [&](const char* from, const char* to) {
    const std::string fill =
        R"("slot":"x0","handle":"h0","wrapper":"w","call":0,"entry_call":0,"path":"arg0")";
    return checked(excluded_forward + with(excluded_replay, fill, with(fill, from, to))).findings;
  };
  SECTION("another wrapper") {
    CHECK(complaint(R"("wrapper":"w")", R"("wrapper":"v")") ==
          Findings{{"slot_used_once", 15, what + "v#0, input arg0, of A#0" + why, {4, 15}}});
  }
  SECTION("another call in forward, whatever the replay's own count says") {
    CHECK(complaint(R"("entry_call":0)", R"("entry_call":1)") ==
          Findings{{"slot_used_once", 15, what + "w#1, input arg0, of A#0" + why, {4, 15}}});
    CHECK(complaint(R"("call":0,)", R"("call":5,)") == no_findings);
  }
  SECTION("another input") {
    CHECK(complaint(R"("path":"arg0")", R"("path":"kwarg.x")") ==
          Findings{{"slot_used_once", 15, what + "w#0, input kwarg.x, of A#0" + why, {4, 15}}});
  }
  SECTION("what is not recorded makes no fault") {
    CHECK(complaint(R"("wrapper":"w",)", "") == no_findings);
    CHECK(complaint(R"(,"path":"arg0")", "") == no_findings);
    CHECK(complaint(R"("entry_call":0,)", "") == no_findings);
    CHECK(complaint(R"("call":0,"entry_call":0,)", "") == no_findings);
  }
}

TEST_CASE("slot_used_once names a slot that serves another micro-batch's frame",
          "[invariants][slot_used_once]") {
  CHECK(checked(R"(
    {"kind":"pack","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"slot":"x0","held":"slot","role":"excl_input","wrapper":"w","call":0,"path":"arg0"}
    {"kind":"frame_create","phase":"forward","unit":"A","inv":1,"microbatch":1,"frame":2}
    {"kind":"slot_fill","phase":"replay","microbatch":1,"frame":2,"slot":"x0","wrapper":"w","call":0,"path":"arg0"}
  )")
            .findings ==
        Findings{{"slot_used_once",
                  3,
                  "slot x0 of wrapper w#0, input arg0, of A#0 (micro-batch 0) is filled in replay "
                  "of micro-batch 1 for wrapper w#0, input arg0, of A#1 (micro-batch 1); a slot "
                  "serves the call and the input that it was packed for",
                  {1, 3}}});
}

TEST_CASE("slot_used_once names an excluded region's slot that one session fills twice",
          "[invariants][slot_used_once]") {
  const std::string filled = excluded_forward + fill_by("s", 0);
  SECTION("in one session") {
    CHECK(checked(filled + fill_by("s", 1)).findings ==
          Findings{{"slot_used_once",
                    12,
                    "slot x0 of wrapper w#0, input arg0, of A#0 is filled in replay, but session s "
                    "filled it before, at event 11; expected one fill for each session",
                    {11, 12}}});
  }
  SECTION("one more time tells nothing new") {
    CHECK(checked(filled + fill_by("s", 1) + fill_by("s", 2)).findings.size() == 1);
  }
  SECTION("but not in two sessions") {
    CHECK(checked(filled + fill_by("t", 1)).findings == no_findings);
  }
  SECTION("nor in one that was cleared, and what was filled in stays there for reads") {
    CHECK(checked(filled + R"({"kind":"session_clear","gid":["session","s"]}
      {"kind":"unpack","phase":"backward","slot":"x0","from":"rederived","graph_task":7})" +
                  "\n" + fill_by("s", 1))
              .findings == no_findings);
  }
  SECTION("nor once its owner is gone") {
    CHECK(checked(filled + R"({"kind":"holder_free","slot":"x0"})" + "\n" + fill_by("s", 1))
              .findings == no_findings);
  }
}

TEST_CASE("slot_used_once tells once what is wrong with slots that share a handle",
          "[invariants][slot_used_once]") {
  const auto pack = [](const char* slot) {
    return with(
               R"({"kind":"pack","phase":"forward","frame":1,"slot":"SLOT","held":"slot","role":"excl_input","handle":"h0","wrapper":"w","call":0,"path":"arg0"})",
               "SLOT", slot) +
           "\n";
  };
  const auto fill = [](const char* slot) {
    return with(
               R"({"kind":"slot_fill","phase":"replay","frame":1,"slot":"SLOT","handle":"h0","wrapper":"w","call":0,"path":"arg1"})",
               "SLOT", slot) +
           "\n";
  };
  CHECK(checked(pack("x0") + pack("x1") + fill("x0") + fill("x1")).findings ==
        Findings{{"slot_used_once",
                  3,
                  "slot x0 of wrapper w#0, input arg0, is filled in replay for wrapper w#0, input "
                  "arg1, of frame 1; a slot serves the call and the input that it was packed for",
                  {1, 3}}});
}

TEST_CASE("slot_used_once holds what an excluded region's slot hands out against its fill",
          "[invariants][slot_used_once]") {
  const std::string other = with(excluded_reads, R"("t":12,"s":11)", R"("t":12,"s":2)");
  CHECK(checked(excluded_forward + excluded_replay + other).findings ==
        Findings{{"slot_used_once",
                  21,
                  "slot x0 of wrapper w#0, input arg0, of A#0 hands out storage 2 in backward, but "
                  "storage 11 was filled in at event 15; expected that value",
                  {15, 21}}});
  SECTION("not where the recorder does not know storages again") {
    const Verdict verdict = checked(
        R"({"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_alloc"]})" +
        excluded_forward + excluded_replay + other);
    CHECK(verdict.findings == no_findings);
    CHECK(needs(verdict, "slot_used_once") ==
          "storage_alloc and storage_free events, which the header says are not recorded (that a "
          "slot hands out what was filled in was not compared)");
  }
}

TEST_CASE("slot_used_once takes entries in the order in which they were put",
          "[invariants][slot_used_once]") {
  SECTION("the last one first") {
    CHECK(checked(two_entries +
                  replay_by("g", pop(0, R"(,"entry_call":2)") + pop(1, R"(,"entry_call":1)")))
              .findings ==
          Findings{{"slot_used_once",
                    6,
                    "wrapper w#0 of A#0 takes the entry of call 2 in the replay of A#0 for session "
                    "g, but that of call 1, put at event 2, is next; entries leave in the order in "
                    "which they came",
                    {2, 6}}});
  }
  SECTION("in order; calls count otherwise in the replay, for a body of forward raised") {
    CHECK(checked(two_entries +
                  replay_by("g", pop(0, R"(,"entry_call":1)") + pop(1, R"(,"entry_call":2)")))
              .findings == no_findings);
  }
  SECTION("in order, as far as an early stop goes") {
    CHECK(checked(two_entries + replay_by("g", pop(0, R"(,"entry_call":1)"))).findings ==
          no_findings);
  }
  SECTION("in order, for all that the trace tells") {
    CHECK(checked(two_entries + replay_by("g", pop(0, "") + pop(1, ""))).findings == no_findings);
  }
}

TEST_CASE("slot_used_once hands an entry out once, over all sessions",
          "[invariants][slot_used_once]") {
  const std::string first = two_entries + replay_by("g", pop(0, ""));
  SECTION("popped by an earlier replay") {
    for (const char* ok : {"", R"(,"ok":false)"}) {
      CHECK(checked(first + replay_by("h", pop(1, ok))).findings ==
            Findings{{"slot_used_once",
                      9,
                      "wrapper w#1 of A#0 asks in the replay of A#0 for session h for the 1st "
                      "entry, put at event 2, but that left at event 6; an entry is handed out "
                      "once, over all sessions",
                      {2, 6, 9}}});
    }
  }
  SECTION("cleared by an earlier replay, and so never read") {
    const std::string cleared =
        two_entries + replay_by("g", R"(  {"kind":"cache_clear","phase":"replay","frame":1})"
                                     "\n");
    CHECK(checked(cleared).findings == no_findings);
    CHECK(checked(cleared + replay_by("h", pop(0, ""))).findings ==
          Findings{{"slot_used_once",
                    9,
                    "wrapper w#0 of A#0 asks in the replay of A#0 for session h for the 1st entry, "
                    "put at event 2, but that left at event 6; an entry is handed out once, over "
                    "all sessions",
                    {2, 6, 9}}});
  }
  SECTION("refused at first, then popped") {
    CHECK(
        checked(two_entries + replay_by("g", pop(0, R"(,"ok":false)")) + replay_by("h", pop(1, "")))
            .findings == no_findings);
  }
  SECTION("entries of another frame are others") {
    CHECK(checked(first +
                  with(R"({"kind":"cache_put","phase":"forward","frame":2,"wrapper":"w","call":0}
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":1,"frame":2,"exec":"replay","gid":["session","g"]}
      {"kind":"cache_pop","phase":"replay","frame":2,"wrapper":"w","call":0,"entry_call":ZERO})",
                       "ZERO", "0"))
              .findings == no_findings);
  }
}

TEST_CASE("slot_used_once believes an unpack that says whether its fill is retained",
          "[invariants][slot_used_once]") {
  const auto read = [](const char* retained) {
    return with(
               R"({"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","g"],"retained":WHAT})",
               "WHAT", retained) +
           "\n";
  };
  const std::string opened = excluded_forward +
                             R"({"kind":"session_open","gid":["session","g"],"retain":true})" +
                             excluded_replay;
  CHECK(checked(opened + read("true") + read("true")).findings == no_findings);
  CHECK(checked(opened + read("true") + read("false")).findings == no_findings);
  CHECK(checked(opened + read("false") + read("false")).findings ==
        Findings{{"slot_used_once",
                  22,
                  "slot A.0 of A#0 is asked for in backward by session g again, after event 21; a "
                  "session that does not retain gets a slot once",
                  {21, 22}}});
}
