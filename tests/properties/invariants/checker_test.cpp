#include "properties/invariants/checker.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/errors.hpp"
#include "properties/invariants/expectations.hpp"
#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// A slot is read twice and never filled, another is filled with another shape, a storage stays,
/// and a third slot is read without a fill in the next step.
const std::string broken = R"(
  {"kind":"pack","phase":"forward","slot":"a","held":"placeholder","role":"plain"}
  {"kind":"unpack","phase":"backward","slot":"a","gid":["group",0]}
  {"kind":"unpack","phase":"backward","slot":"a","gid":["group",0]}
  {"kind":"pack","phase":"forward","slot":"b","held":"placeholder","role":"plain","tensor":{"shape":[4]}}
  {"kind":"repack","phase":"replay","slot":"b","gid":["group",0],"tensor":{"shape":[5]}}
  {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8}
  {"kind":"step_end"}
  {"kind":"pack","phase":"forward","slot":"c","held":"offloaded","role":"plain"}
  {"kind":"unpack","phase":"backward","slot":"c","gid":["group",1]}
)";

std::vector<std::pair<std::int64_t, std::string>> places(const std::vector<Finding>& findings) {
  std::vector<std::pair<std::int64_t, std::string>> places;
  places.reserve(findings.size());
  for (const Finding& finding : findings)
    places.push_back({finding.seq, finding.invariant});
  return places;
}

Verdict check_alone(const std::string& name, const Trace& trace) {
  const std::vector<std::string> names = {name};
  return check(trace, names);
}

}  // namespace

TEST_CASE("Checker sorts findings by event, then by the place of their invariant", "[invariants]") {
  CHECK(places(check(hand_made(broken)).findings) ==
        std::vector<std::pair<std::int64_t, std::string>>{{2, "unpack_follows_replay"},
                                                          {3, "unpack_follows_replay"},
                                                          {3, "slot_used_once"},
                                                          {5, "saved_lists_match"},
                                                          {7, "no_leak_at_step_end"},
                                                          {9, "unpack_follows_replay"}});
}

TEST_CASE("Checker says what is certain when it is stopped, and nothing that waits for more",
          "[invariants]") {
  const Trace trace = hand_made(broken);
  Checker checker;
  for (std::size_t i = 0; i <= 7; ++i)
    checker.observe(trace[i]);
  const Verdict verdict = checker.stop();
  CHECK(verdict.n_events == 8);
  // What the step at event 7 leaves behind may be let go of until the next one.
  CHECK(places(verdict.findings) ==
        std::vector<std::pair<std::int64_t, std::string>>{{2, "unpack_follows_replay"},
                                                          {3, "unpack_follows_replay"},
                                                          {3, "slot_used_once"},
                                                          {5, "saved_lists_match"}});
  CHECK(verdict.not_checked.empty());
}

TEST_CASE("Checker counts the events, and holds when nothing is found", "[invariants]") {
  const Verdict verdict = check(hand_made(broken));
  CHECK(verdict.n_events == 10);
  CHECK_FALSE(verdict.holds());
  CHECK(check(hand_made("")).holds());
  CHECK(check(hand_made("")).n_events == 1);
}

TEST_CASE("Checker finds alone what it finds in company", "[invariants]") {
  const Trace trace = hand_made(broken);
  for (const InvariantRow& row : invariants()) {
    Verdict all = check(trace);
    std::erase_if(all.findings,
                  [&](const Finding& finding) { return finding.invariant != row.name; });
    std::erase_if(all.not_checked,
                  [&](const NotChecked& unchecked) { return unchecked.invariant != row.name; });
    const Verdict alone = check_alone(std::string(row.name), trace);
    CHECK(alone.findings == all.findings);
    CHECK(alone.not_checked == all.not_checked);
  }
}

TEST_CASE(
    "Checker lets an invariant be silent about what another one has explained, also where only "
    "the one is asked for",
    "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"frame_create","phase":"forward","frame":1,"unit":"A"}
    {"kind":"tensor","t":1,"s":1}
    {"kind":"inputs_save","phase":"forward","frame":1,"tensors":[1]}
    {"kind":"pack","phase":"forward","unit":"A","frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed"}
    {"kind":"mutate","phase":"forward","tensor":1,"storage":1}
    {"kind":"unpack_begin","phase":"backward","slot":"A.0","gid":["graph_task",4]}
    {"kind":"inputs_unpack_begin","phase":"backward","frame":1}
    {"kind":"unpack_error","phase":"backward","slot":"A.0","gid":["graph_task",4]}
  )");
  CHECK(places(check(trace).findings) ==
        std::vector<std::pair<std::int64_t, std::string>>{{7, "version_unchanged"}});
  CHECK(check_alone("unpack_follows_replay", trace).findings.empty());
}

TEST_CASE(
    "Checker runs the invariants that it is told, in the registry's order, and no unknown one",
    "[invariants]") {
  const std::vector<std::string> names = {"peak_within_bound", "slot_used_once"};
  const Verdict verdict = check(hand_made("{\"kind\":\"note\"}"), names);
  REQUIRE(verdict.not_checked.size() == 2);
  CHECK(verdict.not_checked[0].invariant == "slot_used_once");
  CHECK(verdict.not_checked[1].invariant == "peak_within_bound");
  const std::vector<std::string> unknown = {"slot_used_twice"};
  CHECK_THROWS_AS(Checker(unknown), InternalError);
}

TEST_CASE("Checker never makes a violation of what it does not know", "[invariants]") {
  const Verdict verdict = check(hand_made(R"(
    {"kind":"teleport","slot":"a","storage":1,"gid":["graph_task",1]}
    {"kind":"unpack","mood":"good"}
    {"kind":"repack"}
    {"kind":"pack"}
    {"kind":"op"}
    {"kind":"mutate"}
    {"kind":"storage_alloc"}
    {"kind":"storage_free"}
    {"kind":"unit_begin"}
    {"kind":"unit_end"}
    {"kind":"early_stop"}
    {"kind":"frame_create"}
    {"kind":"inputs_save"}
    {"kind":"inputs_unpack_begin"}
    {"kind":"inputs_unpack"}
    {"kind":"sac_decide"}
    {"kind":"sac_hit"}
    {"kind":"remat_persist"}
    {"kind":"remat_serve"}
    {"kind":"remat_rederive"}
    {"kind":"slot_fill"}
    {"kind":"unpack_begin"}
    {"kind":"holder_free"}
    {"kind":"grad"}
    {"kind":"side_effect"}
    {"kind":"rng"}
    {"kind":"rng_set"}
    {"kind":"wrapper_enter"}
    {"kind":"wrapper_exit"}
    {"kind":"region_begin"}
    {"kind":"region_end"}
    {"kind":"body_begin"}
    {"kind":"scope_enter"}
    {"kind":"scope_exit"}
    {"kind":"field_put"}
    {"kind":"field_get"}
    {"kind":"collective"}
    {"kind":"send"}
    {"kind":"recv"}
    {"kind":"launch"}
    {"kind":"record"}
    {"kind":"wait"}
    {"kind":"session_open"}
    {"kind":"session_close"}
    {"kind":"session_clear"}
    {"kind":"phase_begin"}
    {"kind":"phase_end"}
    {"kind":"frame_free"}
    {"kind":"unpack_error"}
    {"kind":"error"}
    {"kind":"step_begin"}
    {"kind":"step_end"}
  )"));
  CHECK(verdict.findings.empty());
}

TEST_CASE("Checker says what a header expects in a form that the format does not know",
          "[invariants]") {
  CHECK_THROWS_AS(
      check(hand_made(
          R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"peak_bytes":"8"}})")),
      HeaderError);
}

TEST_CASE("Checker keeps the first ten thousand findings and counts the rest", "[invariants]") {
  std::string trace = "{\"kind\":\"pack\",\"slot\":\"a\",\"held\":\"placeholder\"}\n";
  for (int i = 0; i < 10003; ++i)
    trace += "{\"kind\":\"unpack\",\"slot\":\"a\"}\n";
  const Verdict verdict = check(hand_made(trace));
  CHECK(verdict.findings.size() == 10000);
  CHECK(verdict.n_left_out == 3);
  CHECK(verdict.findings.front().seq == 2);
}
