#include "properties/invariants/policy_stable.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

const std::string header = R"(
  {"kind":"header","format":"ckpt-trace","version":1}
)";

/// Forward of A: of two products the policy keeps the first. Events 1 to 6.
const std::string forward = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[],"outputs":[]}
  {"kind":"sac_decide","phase":"forward","unit":"A","op":"mm","idx":0,"saved":true,"tensors":[]}
  {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[],"outputs":[]}
  {"kind":"sac_decide","phase":"forward","unit":"A","op":"mm","idx":1,"saved":false,"tensors":[]}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";
const std::string replay_begins = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
)";
const std::string served_first = R"(
  {"kind":"sac_hit","phase":"replay","unit":"A","op":"mm","idx":0,"tensors":[]}
)";
const std::string served_second = R"(
  {"kind":"sac_hit","phase":"replay","unit":"A","op":"mm","idx":1,"tensors":[]}
)";
const std::string runs = R"(
  {"kind":"op","phase":"replay","unit":"A","name":"mm","inputs":[],"outputs":[]}
)";
const std::string replay_ends = R"(
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
)";

std::string decision(int rank, bool is_kept) {
  return R"({"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":)" +
         std::to_string(rank + 1) + R"(,"exec":"forward","rank":)" + std::to_string(rank) + "}\n" +
         R"({"kind":"sac_decide","phase":"forward","unit":"A","op":"mm","idx":0,"saved":)" +
         (is_kept ? "true" : "false") + R"(,"tensors":[],"rank":)" + std::to_string(rank) + "}\n";
}
std::string collective(int rank, const std::string& group) {
  return R"({"kind":"collective","phase":"forward","group":")" + group +
         R"(","name":"all_reduce","tag":"a","n":1,"rank":)" + std::to_string(rank) + "}\n";
}
const std::string closing = R"({"kind":"step_end"})";

}  // namespace

TEST_CASE("policy_stable is content where a replay is served what forward kept",
          "[invariants][policy_stable]") {
  CHECK(checked(header + forward + replay_begins + served_first + runs + replay_ends).holds());
  SECTION("also where an early stop leaves calls out") {
    CHECK(checked(header + forward + replay_begins + served_first + replay_ends).holds());
  }
  SECTION("and in each replay from the first call on") {
    CHECK(checked(header + forward + replay_begins + served_first + runs + replay_ends +
                  replay_begins + served_first + runs + replay_ends)
              .holds());
  }
}

TEST_CASE("policy_stable names a kept call that runs, and one that is served though not kept",
          "[invariants][policy_stable]") {
  CHECK(checked(header + forward + replay_begins + runs).findings ==
        Findings{{"policy_stable",
                  8,
                  "call 0 of mm runs in the replay of A#0 for graph task 9, but forward's policy "
                  "kept it (event 3); expected the same decision in both",
                  {3, 8}}});
  CHECK(checked(header + forward + replay_begins + served_first + served_second).findings ==
        Findings{{"policy_stable",
                  9,
                  "call 1 of mm is served in the replay of A#0 for graph task 9, but forward's "
                  "policy did not keep it (event 5); expected the same decision in both",
                  {5, 9}}});
}

TEST_CASE("policy_stable leaves alone what the policy was not asked about",
          "[invariants][policy_stable]") {
  const std::string other = R"(
    {"kind":"op","phase":"replay","unit":"A","name":"relu","inputs":[],"outputs":[]}
  )";
  CHECK(checked(header + forward + replay_begins + other + served_first).holds());
  SECTION("a hook's own op") {
    const std::string internal = R"(
      {"kind":"op","phase":"replay","unit":"A","name":"mm","internal":"pack","inputs":[],"outputs":[]}
    )";
    CHECK(checked(header + forward + replay_begins + internal + served_first).holds());
  }
  SECTION("a region that runs inside the replay: a forward of its own") {
    const std::string nested = R"(
      {"kind":"unit_begin","phase":"replay","unit":"B","frame":2,"exec":"forward"}
      {"kind":"op","phase":"replay","unit":"B","name":"mm","inputs":[],"outputs":[]}
      {"kind":"unit_end","phase":"replay","unit":"B","frame":2,"exec":"forward","ended_by":"return"}
    )";
    CHECK(checked(header + forward + replay_begins + nested + served_first).holds());
  }
}

TEST_CASE("policy_stable compares ranks that share a group", "[invariants][policy_stable]") {
  const std::string differ = decision(0, true) + decision(1, false);
  const std::string together = collective(0, "tp") + collective(1, "tp");
  CHECK(checked(header + differ + together + closing).findings ==
        Findings{{"policy_stable",
                  4,
                  "call 0 of mm in A#0 is not kept on rank 1, and kept on rank 0 (event 2); "
                  "expected one decision on all ranks of a group",
                  {2, 4}}});
  CHECK(checked(header + decision(0, true) + decision(1, true) + together + closing).holds());
  CHECK(checked(header + differ + collective(0, "a") + collective(0, "b") + closing).holds());
}

TEST_CASE("policy_stable says what it needs", "[invariants][policy_stable]") {
  CHECK(needs(checked(header + replay_begins + runs), "policy_stable") == "sac_decide events");
  CHECK(needs(checked(header + forward), "policy_stable").empty());
}
