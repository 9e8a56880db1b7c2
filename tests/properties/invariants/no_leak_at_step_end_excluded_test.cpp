#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/no_leak_at_step_end.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

const std::string step_end =
    "\n"
    R"({"kind":"step_end"})"
    "\n";
/// Nobody but the step can hold anything.
const std::string simulated =
    R"({"kind":"header","format":"ckpt-trace","version":1,"producer":"simulator"})";

/// Entry of call 0 of wrapper w, event 2, which keeps nothing.
const std::string put = R"(
  {"kind":"frame_create","phase":"forward","unit":"A","inv":0,"frame":1}
  {"kind":"cache_put","phase":"forward","frame":1,"wrapper":"w","call":0,"kept":false}
)";
/// The entry leaves so, before the step ends or behind that.
std::string in_time(const std::string& leaves) {
  return put + leaves + step_end;
}
std::string later(const std::string& leaves) {
  return put + step_end + leaves;
}

const Findings leak_of_the_entry = {
    {"no_leak_at_step_end",
     3,
     "the step ends and 1 thing of it is still owned: the cache entry of wrapper w#0 of A#0, put "
     "at event 2; expected only parameters, gradients and what the caller holds",
     {2, 3}}};

}  // namespace

TEST_CASE("no_leak_at_step_end finds nothing where an excluded region's frame is gone",
          "[invariants][no_leak_at_step_end]") {
  CHECK(checked(simulated + excluded_forward + excluded_replay + excluded_reads + excluded_end)
            .findings == no_findings);
}

TEST_CASE("no_leak_at_step_end names an entry that nobody popped nor dropped",
          "[invariants][no_leak_at_step_end]") {
  CHECK(checked(put + step_end).findings == leak_of_the_entry);
  CHECK(checked(simulated + put + step_end).findings == leak_of_the_entry);
  SECTION("with the bytes that it keeps") {
    CHECK(
        checked(excluded_forward + R"({"kind":"storage_free","storage":1})" + step_end).findings ==
        Findings{{"no_leak_at_step_end",
                  12,
                  "the step ends and 2 things of it are still owned: storage 2 (16 bytes, made "
                  "by square, kept by an excluded region's forward), born at event 5; the cache "
                  "entry of wrapper w#0 of A#0 (16 bytes of kept outputs), put at event 8; "
                  "expected only parameters, gradients and what the caller holds",
                  {5, 8, 12}}});
  }
  SECTION("of its own step only") {
    CHECK(checked(put + step_end + step_end).findings == leak_of_the_entry);
  }
}

TEST_CASE("no_leak_at_step_end lets an entry leave in all its ways",
          "[invariants][no_leak_at_step_end]") {
  for (const char* leaves :
       {R"({"kind":"cache_pop","phase":"replay","frame":1,"wrapper":"w","call":0})",
        R"({"kind":"cache_clear","phase":"replay","frame":1,"entries":1})",
        R"({"kind":"frame_free","phase":"backward","frame":1})"}) {
    CHECK(checked(in_time(leaves)).findings == no_findings);
    // A caller may have held the loss, and with it the frame, until the next step.
    CHECK(checked(later(leaves)).findings == no_findings);
    CHECK(checked(simulated + later(leaves)).findings == leak_of_the_entry);
  }
  SECTION("a pop that was refused and another frame's clear are none") {
    CHECK(
        checked(simulated + put + step_end + R"({"kind":"cache_clear","phase":"replay","frame":2})")
            .findings == leak_of_the_entry);
    CHECK(checked(put +
                  R"({"kind":"cache_pop","phase":"replay","frame":1,"wrapper":"w","ok":false}
      {"kind":"step_end"})")
              .findings.size() == 1);
  }
  SECTION("after an error nothing is due") {
    CHECK(checked(put + R"({"kind":"error","phase":"backward","type":"RuntimeError"})" + step_end)
              .findings == no_findings);
  }
}

TEST_CASE("no_leak_at_step_end names slots of excluded regions, and what a replay rederived",
          "[invariants][no_leak_at_step_end]") {
  const std::string held = R"(
    {"kind":"pack","phase":"forward","slot":"p0","held":"saved","role":"plain"}
    {"kind":"holder_free","slot":"p0"}
    {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x0","held":"slot","role":"excl_input","wrapper":"w","call":0,"path":"arg0"}
    {"kind":"op","phase":"replay","name":"sin","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]}
    {"kind":"slot_fill","phase":"replay","frame":1,"slot":"x0","wrapper":"w","call":0,"path":"arg0","tensor":{"t":1,"s":1}}
  )";
  CHECK(checked(held + step_end).findings ==
        Findings{{"no_leak_at_step_end",
                  6,
                  "the step ends and 2 things of it are still owned: slot x0 of wrapper w#0, input "
                  "arg0, of A#0, packed at event 3; storage 1 (8 bytes, made by sin, rederived for "
                  "an excluded region), born at event 4; expected only parameters, gradients and "
                  "what the caller holds",
                  {3, 4, 6}}});
}
