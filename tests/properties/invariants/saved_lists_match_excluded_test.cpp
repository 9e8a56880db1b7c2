#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/saved_lists_match.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

const std::string fill =
    R"("path":"arg0","tensor":{"t":11,"s":11,"dtype":"f32","shape":[4],"stride":[1],"off":0}})";

/// The sound trace with the fill's tensor so changed.
Findings with_fill(const char* from, const char* to) {
  return checked(excluded_forward + with(excluded_replay, fill, with(fill, from, to))).findings;
}

}  // namespace

TEST_CASE("saved_lists_match does not count an excluded body's packs among its region's saves",
          "[invariants][saved_lists_match]") {
  const std::string kept = with(
      excluded_forward, R"(  {"kind":"boundary")",
      R"(  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x1","held":"saved","role":"excl_saved","wrapper":"w","call":0,"tensor":{"t":2,"s":2}}
  {"kind":"boundary")");
  CHECK(checked(kept + excluded_replay).findings == no_findings);
}

TEST_CASE("saved_lists_match compares the layout of an excluded region's input when it is filled",
          "[invariants][saved_lists_match]") {
  SECTION("shape") {
    CHECK(with_fill(R"("shape":[4],"stride":[1])", R"("shape":[2,2],"stride":[2,1])") ==
          Findings{{"saved_lists_match",
                    15,
                    "slot x0 of wrapper w#0, input arg0, of A#0 was packed as f32 [4] stride [1] "
                    "offset 0 and is filled in the replay of A#0 for session g with f32 [2,2] "
                    "stride [2,1] offset 0; expected the layout that forward saved",
                    {4, 15}}});
  }
  SECTION("dtype") {
    CHECK(with_fill(R"("dtype":"f32")", R"("dtype":"i32")") ==
          Findings{{"saved_lists_match",
                    15,
                    "slot x0 of wrapper w#0, input arg0, of A#0 was packed as f32 [4] stride [1] "
                    "offset 0 and is filled in the replay of A#0 for session g with i32 [4] stride "
                    "[1] offset 0; expected the layout that forward saved",
                    {4, 15}}});
  }
  SECTION("the offset may differ: a view counts from where the replay's input begins") {
    CHECK(with_fill(R"("off":0)", R"("off":16)") == no_findings);
  }
  SECTION("what is not recorded makes no fault") {
    CHECK(with_fill(R"("dtype":"f32",)", "") == no_findings);
    CHECK(with_fill(R"(,"shape":[4],"stride":[1])", "") == no_findings);
  }
}

TEST_CASE("saved_lists_match compares the layout again when an excluded region's input is read",
          "[invariants][saved_lists_match]") {
  CHECK(checked(excluded_forward + excluded_replay +
                with(excluded_reads, R"("shape":[4])", R"("shape":[2])"))
            .findings ==
        Findings{{"saved_lists_match",
                  21,
                  "slot x0 of wrapper w#0, input arg0, of A#0 was filled as f32 [4] stride [1] "
                  "offset 0 and is read in backward as f32 [2] stride [1] offset 0; expected the "
                  "layout that was filled in",
                  {15, 21}}});
}

TEST_CASE("saved_lists_match wants an excluded region's input from the op that forward had it from",
          "[invariants][saved_lists_match]") {
  // In forward and in the replay: cos beside sin, of one layout.
  const std::string cos_forward = with(
      excluded_forward, R"(  {"kind":"wrapper_enter")",
      R"(  {"kind":"op","phase":"forward","unit":"A","name":"cos","inputs":[],"outputs":[{"t":3,"s":3,"bytes":16}]}
  {"kind":"wrapper_enter")");
  const std::string cos_replay = with(
      excluded_replay, R"(  {"kind":"wrapper_enter")",
      R"(  {"kind":"op","phase":"replay","unit":"A","name":"cos","inputs":[],"outputs":[{"t":13,"s":13,"bytes":16}]}
  {"kind":"wrapper_enter")");
  const std::string swapped =
      with(cos_replay, R"("tensor":{"t":11,"s":11)", R"("tensor":{"t":13,"s":13)");
  CHECK(checked(cos_forward + cos_replay).findings == no_findings);
  CHECK(checked(cos_forward + swapped).findings ==
        Findings{{"saved_lists_match",
                  17,
                  "slot x0 of wrapper w#0, input arg0, of A#0 was packed with what sin made and is "
                  "filled in the replay of A#0 for session g with what cos made; expected the "
                  "value that forward saved",
                  {5, 17}}});
  SECTION("one of them may have come from outside the trace") {
    CHECK(checked(cos_forward +
                  with(swapped, R"("tensor":{"t":13,"s":13)", R"("tensor":{"t":33,"s":33)"))
              .findings == no_findings);
  }
  SECTION("what follows from another path was told there") {
    CHECK(checked(excluded_forward + swapped).findings ==
          Findings{{"saved_lists_match",
                    13,
                    "cos runs in the replay of A#0 for session g, but forward of A#0 has no such "
                    "op after sin: the replay takes another path; expected forward's ops in "
                    "forward's order",
                    {1, 11, 13}}});
  }
  SECTION("one finding for slots that share a handle, none once the owner is gone") {
    const std::string pack =
        R"(  {"kind":"pack","phase":"forward","frame":1,"slot":"x1","held":"slot","role":"excl_input","handle":"h0","wrapper":"w","call":0,"path":"arg0","tensor":{"t":1,"s":1}})";
    const std::string again =
        R"(  {"kind":"slot_fill","phase":"replay","frame":1,"slot":"x1","handle":"h0","wrapper":"w","call":0,"entry_call":0,"path":"arg0","tensor":{"t":13,"s":13}})";
    const std::string two =
        with(cos_forward, R"(  {"kind":"cache_put")", pack + "\n" + R"(  {"kind":"cache_put")");
    const std::string fills =
        with(swapped, R"(  {"kind":"boundary")", again + "\n" + R"(  {"kind":"boundary")");
    CHECK(checked(two + fills).findings.size() == 1);
    CHECK(checked(two + R"({"kind":"holder_free","slot":"x0"}
      {"kind":"holder_free","slot":"x1"})" +
                  fills)
              .findings == no_findings);
  }
}
