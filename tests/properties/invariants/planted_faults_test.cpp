#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "properties/invariants/checker.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/planted_faults.hpp"
#include "tests/properties/invariants/recording.hpp"
#include "tests/sanitizers.hpp"
#include "traces/byte_source.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

const std::string nothing;  // compared with, so that a failure prints what there is

constexpr int plantings_max = built_with_sanitizers ? 3 : 24;  // of each kind

Verdict verdict_on(const std::string& text) {
  TraceReader reader(bytes_in_memory(text), "planted");
  Trace trace;
  Checker checker;
  while (reader.read(trace, 4096) > 0) {
    for (std::size_t i = 0; i < trace.size(); ++i)
      checker.observe(trace[i]);
    trace.drop_events();
  }
  return checker.finish();
}

const std::vector<Recording>& recordings() {
  static const std::vector<Recording> all = sound_recordings();
  return all;
}

/// What is wrong with the verdict on a fault of that kind; empty where it is as it should be.
std::string complaint(const Planted& planted, const ChangedTrace& trace, const Verdict& verdict) {
  if (verdict.findings.empty()) return "nothing was found";
  const auto names_it = [&](const Finding& finding) {
    return finding.invariant == planted.invariant;
  };
  const auto first = std::find_if(verdict.findings.begin(), verdict.findings.end(), names_it);
  if (first == verdict.findings.end()) return "another invariant was named";
  if (planted.certain_at && first->seq != trace.seq_of(*planted.certain_at))
    return "it stands at another event than " + std::to_string(trace.seq_of(*planted.certain_at));
  for (const Finding& finding : verdict.findings) {
    if (!names_it(finding) && std::find(planted.also.begin(), planted.also.end(),
                                        finding.invariant) == planted.also.end())
      return "one fault, more than one finding";
  }
  return {};
}

/// Plants that kind here and there; how often there was a place for it.
int plant_everywhere(const FaultKind& kind, std::uint64_t number) {
  int n_planted = 0;
  const std::uint64_t attempts_max = 2 * recordings().size();
  for (std::uint64_t attempt = 0; attempt < attempts_max && n_planted < plantings_max; ++attempt) {
    Choices choices(number, attempt);
    const Recording& recording = choices.one_of(recordings());
    ChangedTrace trace(recording);
    const auto planted = kind.plant(recording, trace, choices);
    if (!planted) continue;
    ++n_planted;
    const Verdict verdict = verdict_on(trace.text());
    CAPTURE(kind.name, recording.name, attempt, verdict.findings);
    CHECK(complaint(*planted, trace, verdict) == nothing);
  }
  return n_planted;
}

void plant(const std::vector<FaultKind>& kinds, std::uint64_t first_number) {
  REQUIRE_FALSE(recordings().empty());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CAPTURE(kinds[i].name);
    CHECK(plant_everywhere(kinds[i], first_number + i) > 0);
  }
}

}  // namespace

TEST_CASE("sound recordings are found sound", "[invariants][planted]") {
  for (const Recording& recording : recordings()) {
    CAPTURE(recording.name);
    CHECK(verdict_on(ChangedTrace(recording).text()).findings == no_findings);
  }
}

TEST_CASE("planted in slots and replays, every fault is named at its event",
          "[invariants][planted]") {
  plant(faults_in_slots(), 100);
}

TEST_CASE("planted in the life of storages, every fault is named at its event",
          "[invariants][planted]") {
  plant(faults_in_memory(), 200);
}

TEST_CASE("planted in what steps and ranks do, every fault is named at its event",
          "[invariants][planted]") {
  plant(faults_in_steps(), 300);
}

TEST_CASE("what is not recorded and what nobody knows makes no fault", "[invariants][planted]") {
  const std::vector<std::string> optional_fields = {
      "ts_ns", "dur_ns", "microbatch", "node", "graph_task", "holder_alive",
      "of",    "thread", "live",       "v",    "inv",        "rng_crc"};
  for (std::uint64_t attempt = 0; attempt < 30; ++attempt) {
    Choices choices(400, attempt);
    const Recording& recording = choices.one_of(recordings());
    const std::string& left_out = choices.one_of(optional_fields);
    ChangedTrace trace(recording);
    for (std::size_t at = 0; at < recording.events.size(); ++at) {
      trace[at].erase(left_out);
      if (choices.below(8) == 0) trace[at]["nobody_knows"] = "this field";
      if (at > 0 && choices.below(16) == 0)
        trace.insert_before(at, {{"kind", "nobody_knows"}, {"storage", 3}, {"slot", "f0.0"}});
    }
    CAPTURE(recording.name, left_out);
    CHECK(verdict_on(trace.text()).findings == no_findings);
  }
}

TEST_CASE("a replay may look at what it has without leaving forward's path",
          "[invariants][planted]") {
  for (std::uint64_t attempt = 0; attempt < 20; ++attempt) {
    Choices choices(500, attempt);
    const Recording& recording = choices.one_of(recordings());
    ChangedTrace trace(recording);
    std::int64_t tensor = recording.unused_id;
    for (const RecordedReplay& replay : recording.replays) {
      for (const std::size_t op : replay.ops) {
        if (choices.below(3) > 0 || recording.events[op]["outputs"].empty()) continue;
        nlohmann::json view = recording.events[op];
        view["inputs"] = {view["outputs"][0]["t"]};
        view["outputs"] = {view["outputs"][0]};
        view["outputs"][0]["t"] = tensor++;
        view["name"] = choices.below(2) == 0 ? "aten.view.default" : "aten.detach.default";
        trace.insert_after(op, view);
      }
    }
    CAPTURE(recording.name);
    CHECK(verdict_on(trace.text()).findings == no_findings);
  }
}

}  // namespace remat
