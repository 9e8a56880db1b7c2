#include "properties/invariants/checker.hpp"

#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "model/errors.hpp"
#include "properties/invariants/expectations.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "traces/byte_source.hpp"
#include "traces/reader.hpp"

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

/// A long run, made up as it is read: every step of it is the same but for its numbers of graph
/// tasks.
class LongRun : public ByteSource {
 public:
  explicit LongRun(std::int64_t steps) : steps_left_(steps) {}

  std::size_t read(std::span<char> into) override {
    while (buffer_.empty() && steps_left_ > 0)
      next_step();
    const std::size_t n = std::min(into.size(), buffer_.size());
    std::memcpy(into.data(), buffer_.data(), n);
    buffer_.erase(0, n);
    return n;
  }

 private:
  void add(const std::string& event) {
    buffer_ += "{\"seq\":" + std::to_string(seq_++) + "," + event + "}\n";
  }

  void next_step() {
    if (seq_ == 0)
      add(R"("kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"mm":2},"gradients":{"w":["g"]},"peak_bytes":64})");
    const std::string task = std::to_string(steps_left_--);
    const std::string unit = R"("unit":"A","inv":0,"microbatch":0,"frame":1)";
    add(R"("kind":"step_begin","phase":"setup")");
    add(R"("kind":"frame_create","phase":"forward",)" + unit);
    add(R"("kind":"unit_begin","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"rng","phase":"forward","generator":"cuda")");
    add(R"("kind":"storage_alloc","phase":"forward","storage":1,"bytes":8,"op":"mm")");
    add(R"("kind":"op","phase":"forward","unit":"A","inv":0,"name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}])");
    add(R"("kind":"sac_decide","phase":"forward","op":"mm","idx":0,"saved":true,"tensors":[1])");
    add(R"("kind":"side_effect","phase":"forward","name":"log")");
    add(R"("kind":"pack","phase":"forward","idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1},)" +
        unit);
    add(R"("kind":"pack","phase":"forward","slot":"R.in","role":"remat_saved_input","region":"R")");
    add(R"("kind":"unit_end","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"phase_end","phase":"forward")");
    add_a_call_without_a_frame();
    for (const char* rank : {"0", "1"}) {
      add(R"("kind":"collective","phase":"forward","group":"dp","name":"all_reduce","rank":)" +
          std::string(rank));
    }
    add(R"("kind":"send","phase":"forward","rank":0,"peer":1)");
    add(R"("kind":"recv","phase":"forward","rank":1,"peer":0)");
    add(R"("kind":"session_open","retain":true,"graph_task":)" + task);
    add(R"("kind":"unit_begin","phase":"replay","exec":"replay","graph_task":)" + task + "," +
        unit);
    add(R"("kind":"rng_set","phase":"replay","generator":"cuda","to":)" + std::to_string(draws_));
    add(R"("kind":"rng","phase":"replay","generator":"cuda")");
    add(R"("kind":"storage_alloc","phase":"replay","storage":2,"bytes":8,"op":"mm")");
    add(R"("kind":"op","phase":"replay","unit":"A","inv":0,"name":"mm","inputs":[1],"outputs":[{"t":2,"s":2,"bytes":8}])");
    add(R"("kind":"mutate","phase":"replay","tensor":2,"storage":2)");
    add(R"("kind":"remat_rederive","phase":"replay","region":"R","graph_task":)" + task);
    add(R"("kind":"repack","phase":"replay","frame":1,"idx":0,"tensor":{"t":2,"s":2},"graph_task":)" +
        task);
    add(R"("kind":"unit_end","phase":"replay","exec":"replay","ended_by":"return",)" + unit);
    add(R"("kind":"unpack","phase":"backward","slot":"A.0","tensor":{"t":2,"s":2},"graph_task":)" +
        task);
    add(R"("kind":"unpack","phase":"backward","slot":"R.in","graph_task":)" + task);
    add(R"("kind":"grad","phase":"backward","param":"w","value":"g")");
    add(R"("kind":"holder_free","phase":"backward","slot":"A.0","frame":1)");
    add(R"("kind":"frame_free","phase":"backward","frame":1)");
    add(R"("kind":"session_close","retain":false,"graph_task":)" + task);
    for (const char* storage : {"1", "2"})
      add(R"("kind":"storage_free","phase":"backward","storage":)" + std::string(storage));
    for (const char* stream : {"compute", "copy"}) {
      add(R"("kind":"launch","phase":"backward","reads":[1],"stream":")" + std::string(stream) +
          "\"");
    }
    add(R"("kind":"step_end","phase":"setup")");
    ++draws_;
  }

  void add_a_call_without_a_frame() {
    const std::string unit = R"("unit":"B","inv":0,"thread":0)";
    add(R"("kind":"unit_begin","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"rng","phase":"forward","thread":0,"generator":"cpu")");
    add(R"("kind":"op","phase":"forward","name":"f","inputs":[1],"outputs":[{"t":3,"s":3,"bytes":8}],)" +
        unit);
    add(R"("kind":"side_effect","phase":"forward","name":"log",)" + unit);
    add(R"("kind":"unit_end","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"storage_free","phase":"forward","storage":3)");
    // Nothing says where this replay ends.
    add(R"("kind":"unit_begin","phase":"replay","exec":"replay",)" + unit);
    add(R"("kind":"op","phase":"replay","name":"f","inputs":[1],"outputs":[{"t":3,"s":3,"bytes":8}],)" +
        unit);
    add(R"("kind":"storage_free","phase":"replay","thread":0,"storage":3)");
  }

  std::int64_t steps_left_;
  std::int64_t seq_ = 0;
  std::int64_t draws_ = 0;
  std::string buffer_;
};

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

TEST_CASE("Checker keeps what is alive, not the run: twice the steps take no more memory",
          "[invariants]") {
  constexpr std::int64_t steps = 10000;
  TraceReader reader(std::make_unique<LongRun>(steps), "t");
  Trace trace;
  Checker checker;
  std::int64_t steps_ended = 0;
  std::size_t bytes_early = 0;
  while (reader.read(trace, 1) > 0) {
    checker.observe(trace[0]);
    if (trace[0].kind() == Kind::step_end && ++steps_ended == steps / 2)
      bytes_early = mallinfo2().uordblks;
    trace.drop_events();
  }
  CHECK(steps_ended == steps);
  // What the allocator has handed out; a sanitizer's allocator says 0 at both times.
  CHECK(mallinfo2().uordblks <= bytes_early + 4096);
  CHECK(checker.finish().findings.empty());
}
