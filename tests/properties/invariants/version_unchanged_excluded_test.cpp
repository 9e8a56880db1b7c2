#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/version_unchanged.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

/// The text with a write to that storage in front of the line that begins so.
std::string written_before(const std::string& text, const std::string& line_begins, int storage) {
  return with(text, "  " + line_begins,
              R"(  {"kind":"mutate","storage":)" + std::to_string(storage) + "}\n  " + line_begins);
}

/// A body that saves parameter 5 as if the replay made it: events 1 to 4.
const std::string saves_a_parameter = R"(
  {"kind":"role","storage":5,"role":"param"}
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x0","held":"slot","role":"excl_input","wrapper":"w","call":0,"path":"arg1","tensor":{"t":5,"s":5}}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
)";
const std::string replay_begins =
    R"({"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["session","g"]}
)";
const std::string parameter_fill =
    R"({"kind":"slot_fill","phase":"replay","frame":1,"slot":"x0","wrapper":"w","call":0,"path":"arg1","tensor":{"t":5,"s":5}}
)";

}  // namespace

TEST_CASE("version_unchanged counts the writes to what an excluded body saved and what fills it",
          "[invariants][version_unchanged]") {
  const std::string pack =
      R"({"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x0")";
  SECTION("the body wrote its input before it saved it") {
    CHECK(checked(written_before(excluded_forward, pack, 1) + excluded_replay).findings ==
          Findings{{"version_unchanged",
                    16,
                    "slot x0 of wrapper w#0, input arg0, of A#0 is filled in the replay of A#0 for "
                    "session g with a value after 0 writes, but was packed after 1 write (event "
                    "5); expected the value that forward saved",
                    {4, 5, 16}}});
  }
  SECTION("the replay wrote it too, before it gave it to the wrapper") {
    CHECK(checked(written_before(excluded_forward, R"({"kind":"wrapper_enter")", 1) +
                  written_before(excluded_replay, R"({"kind":"wrapper_enter")", 11))
              .findings == no_findings);
  }
  SECTION("the body wrote it after it saved it: the replay does not") {
    CHECK(checked(written_before(excluded_forward, R"({"kind":"boundary")", 1) + excluded_replay +
                  excluded_reads)
              .findings == no_findings);
  }
  SECTION("the storage was written in an earlier life") {
    const std::string before = R"(
      {"kind":"storage_alloc","storage":1,"bytes":16}
      {"kind":"mutate","storage":1}
      {"kind":"storage_free","storage":1}
    )";
    CHECK(checked(before + excluded_forward + excluded_replay + excluded_reads).findings ==
          no_findings);
  }
  SECTION("one side was there before the trace began") {
    CHECK(checked(written_before(excluded_forward, pack, 1) +
                  with(excluded_replay, R"("tensor":{"t":11,"s":11)", R"("tensor":{"t":33,"s":33)"))
              .findings == no_findings);
  }
  SECTION("one finding for slots that share a handle") {
    const std::string second =
        R"(  {"kind":"slot_fill","phase":"replay","frame":1,"slot":"x1","handle":"h0","wrapper":"w","call":0,"path":"arg0","tensor":{"t":11,"s":11}})";
    const std::string packed =
        R"(  {"kind":"pack","phase":"forward","frame":1,"slot":"x1","held":"slot","role":"excl_input","handle":"h0","wrapper":"w","call":0,"path":"arg0","tensor":{"t":1,"s":1}})";
    CHECK(checked(with(written_before(excluded_forward, pack, 1), R"(  {"kind":"cache_put")",
                       packed + "\n" + R"(  {"kind":"cache_put")") +
                  with(excluded_replay, R"(  {"kind":"boundary")",
                       second + "\n" + R"(  {"kind":"boundary")"))
              .findings.size() == 1);
  }
}

TEST_CASE("version_unchanged tells a write after the wrapper when its input is read",
          "[invariants][version_unchanged]") {
  const Findings told = {{"version_unchanged",
                          22,
                          "slot x0 of wrapper w#0, input arg0, of A#0 is read in backward, but "
                          "storage 11, filled in at event 15, was written since, at event 19 "
                          "(version 0 then, 1 now); expected no write before the read",
                          {15, 19, 22}}};
  // In the replay itself, as forward did.
  CHECK(checked(excluded_forward + written_before(excluded_replay, R"({"kind":"unit_end")", 11) +
                excluded_reads)
            .findings == told);
}

TEST_CASE("version_unchanged compares the versions of a storage that is packed and filled in",
          "[invariants][version_unchanged]") {
  SECTION("an optimizer's step between") {
    CHECK(checked(saves_a_parameter + R"({"kind":"mutate","phase":"optimizer","storage":5})" +
                  "\n" + replay_begins + parameter_fill)
              .findings ==
          Findings{{"version_unchanged",
                    7,
                    "slot x0 of wrapper w#0, input arg1, of A#0 is filled in the replay of A#0 for "
                    "session g with a value after 1 write, but was packed after 0 writes (event "
                    "3); expected the value that forward saved",
                    {3, 5, 7}}});
  }
  SECTION("which was told where the replay read it") {
    const std::string forward =
        with(saves_a_parameter, R"(  {"kind":"unit_end")",
             R"(  {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[5],"outputs":[]}
  {"kind":"unit_end")");
    const Verdict verdict = checked(
        forward + R"({"kind":"mutate","phase":"optimizer","storage":5})" + "\n" + replay_begins +
        R"({"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[5],"outputs":[]})" +
        "\n" + parameter_fill);
    REQUIRE(verdict.findings.size() == 1);
    CHECK(verdict.findings.front().seq == 8);
  }
  SECTION("a write of the replay's own is another invariant's business") {
    CHECK(checked(saves_a_parameter + replay_begins +
                  R"({"kind":"mutate","phase":"replay","unit":"A","storage":5})" + "\n" +
                  parameter_fill)
              .findings == no_findings);
  }
}

TEST_CASE("version_unchanged goes by the field v of fills where a recorder sees no writes",
          "[invariants][version_unchanged]") {
  const std::string header =
      R"({"kind":"header","format":"ckpt-trace","version":1,"not_recorded":["storage_alloc","storage_free"]}
)";
  const auto fill = [](const char* version) {
    return with(
        R"({"kind":"slot_fill","phase":"replay","slot":"x0","wrapper":"w","call":0,"tensor":{"t":2,"s":2,"v":WHAT}})",
        "WHAT", version);
  };
  const std::string pack =
      R"({"kind":"pack","phase":"forward","slot":"x0","held":"slot","role":"excl_input","wrapper":"w","call":0,"tensor":{"t":1,"s":1,"v":1}}
)";
  CHECK(checked(header + pack + fill("1")).findings == no_findings);
  CHECK(checked(header + pack + fill("0")).findings ==
        Findings{{"version_unchanged",
                  2,
                  "slot x0 of wrapper w#0 is filled in replay with a value after 0 writes, but was "
                  "packed after 1 write (event 1); expected the value that forward saved",
                  {1, 2}}});
}

TEST_CASE("version_unchanged compares a kept output when its entry is popped",
          "[invariants][version_unchanged]") {
  SECTION("written between") {
    CHECK(
        checked(excluded_forward + R"({"kind":"mutate","storage":2})" + excluded_replay).findings ==
        Findings{{"version_unchanged",
                  15,
                  "wrapper w#0 of A#0 takes its kept output in the replay of A#0 for session g, "
                  "but storage 2, kept at event 8, was written since, at event 11 (version 0 "
                  "then, 1 now); expected no write while it is kept",
                  {8, 11, 15}}});
  }
  SECTION("not written, or written before it was kept, or after it was popped") {
    CHECK(checked(written_before(excluded_forward, R"({"kind":"cache_put")", 2) +
                  written_before(excluded_replay, R"({"kind":"unit_end")", 2))
              .findings == no_findings);
  }
}

TEST_CASE("version_unchanged tells a write to a kept output where the run stops with an error",
          "[invariants][version_unchanged]") {
  const std::string stopped = R"(
    {"kind":"mutate","storage":2}
    {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["session","g"],"type":"RuntimeError"}
  )";
  CHECK(checked(excluded_forward + stopped).findings ==
        Findings{{"version_unchanged",
                  12,
                  "the run stops with RuntimeError in backward, and A#0 relies on storage 2, which "
                  "it kept or read at event 8 and which was written since, at event 11 (version 0 "
                  "then, 1 now)",
                  {8, 11, 12}}});
  // What was popped is not relied on any more.
  CHECK(checked(excluded_forward + excluded_replay + stopped).findings == no_findings);
}
