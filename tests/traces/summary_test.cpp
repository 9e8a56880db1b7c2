#include "traces/summary.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/byte_source.hpp"
#include "traces/reader.hpp"
#include "traces/summary_json.hpp"

namespace fs = std::filesystem;
using namespace remat;
using nlohmann::json;

namespace {

/// Few events at a time, dropped in between: what a summary needs, it has kept.
TraceSummary summary_read_from(TraceReader reader) {
  Trace trace;
  SummaryBuilder builder;
  while (reader.read(trace, 7) != 0) {
    for (std::size_t i = 0; i < trace.size(); ++i)
      builder.observe(trace[i]);
    trace.drop_events();
  }
  return builder.finish();
}

/// The events as JSON objects without `seq`; the header is added.
TraceSummary summary_of(const std::vector<std::string>& events) {
  std::string text = R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1,"case":"t"})";
  for (std::size_t i = 0; i < events.size(); ++i)
    text += "\n{\"seq\":" + std::to_string(i + 1) + "," + events[i].substr(1);
  text += "\n";
  return summary_read_from(TraceReader(bytes_in_memory(text), "t"));
}

std::string op(const std::string& phase, const std::string& fields, int microbatch = 0) {
  return R"({"kind":"op","inputs":[],"outputs":[],"microbatch":)" + std::to_string(microbatch) +
         R"(,"phase":")" + phase + "\"," + fields + "}";
}

std::string pack(const std::string& unit, const std::string& slot, int microbatch = 0) {
  return R"({"kind":"pack","phase":"forward","held":"placeholder","role":"checkpointed","unit":")" +
         unit + R"(","slot":")" + slot + R"(","microbatch":)" + std::to_string(microbatch) + "}";
}

std::string unpack(const std::string& slot) {
  return R"({"kind":"unpack","phase":"backward","from":"recomputed","slot":")" + slot + "\"}";
}

std::string unit_begin(const std::string& unit, int frame, const std::string& exec,
                       const std::string& fields) {
  return R"({"kind":"unit_begin","phase":"replay","microbatch":0,"inv":0,"unit":")" + unit +
         R"(","frame":)" + std::to_string(frame) + R"(,"exec":")" + exec + "\"," + fields + "}";
}

/// The row's numbers: ops of forward, ops of replay, packs, unpacks, replays.
std::vector<std::int64_t> numbers(const UnitSummary& row) {
  return {row.ops_forward, row.ops_replay, row.packs, row.unpacks, row.replays};
}

/// A region within a region, replayed: the inner one runs again inside the outer's replay, as a
/// forward of a new frame, and is then replayed itself.
std::vector<std::string> nested_units() {
  const std::string session = R"("gid":["graph_task",4],"graph_task":4,)";
  return {op("forward", R"("name":"sin","unit":"outer")"),
          pack("outer", "o0"),
          op("forward", R"("name":"mm","unit":"outer/inner")"),
          pack("outer/inner", "i0"),
          unit_begin("outer", 1, "replay", session + R"("node":["SinBackward0",9])"),
          op("replay", R"("name":"sin","unit":"outer")"),
          unit_begin("outer/inner", 2, "forward", R"("gid":null)"),
          op("replay", R"("name":"mm","unit":"outer/inner")"),
          pack("outer/inner", "i1"),
          R"({"kind":"early_stop","unit":"outer","inv":0,"after_packs":1,"of":1,"after_ops":2})",
          unit_begin("outer/inner", 2, "replay", session + R"("nested_in":1)"),
          op("replay", R"("name":"mm","unit":"outer/inner")"),
          unpack("i1"),
          unpack("o0")};
}

}  // namespace

TEST_CASE("A summary counts nested units apart", "[traces]") {
  const TraceSummary summary = summary_of(nested_units());
  CHECK(summary.events == 15);  // 14 and the header
  CHECK(summary.ops == std::map<Phase, Counts>{{Phase::forward, {{"mm", 1}, {"sin", 1}}},
                                               {Phase::replay, {{"mm", 2}, {"sin", 1}}}});
  CHECK(summary.packs_by_unit == Counts{{"outer", 1}, {"outer/inner", 2}});
  CHECK(summary.packs_by_held == Counts{{"placeholder:checkpointed", 3}});
  CHECK(summary.unpacks == Counts{{"recomputed", 2}});
  CHECK(summary.replays == Counts{{"outer#0", 1}, {"outer/inner#0", 1}});
  REQUIRE(summary.units.size() == 2);
  CHECK(numbers(summary.units[0]) == std::vector<std::int64_t>{1, 1, 1, 1, 1});
  // inner: 1 op in forward, 1 in outer's replay and 1 in its own; packs i0, i1; only i1 is read.
  CHECK(numbers(summary.units[1]) == std::vector<std::int64_t>{1, 2, 2, 1, 1});
}

TEST_CASE("A summary tells who was replayed, in order, and what asked for it", "[traces]") {
  const json replays = json::parse(summary_json(summary_of(nested_units()))).at("replay_order");
  CHECK(replays == json::parse(R"([
    {"seq":5,"unit":"outer","inv":0,"microbatch":0,"frame":1,"gid_kind":"graph_task",
     "graph_task":4,"node":"SinBackward0","nested_in":null},
    {"seq":11,"unit":"outer/inner","inv":0,"microbatch":0,"frame":2,"gid_kind":"graph_task",
     "graph_task":4,"node":null,"nested_in":1}])"));
}

TEST_CASE("A summary has one row for each unit and micro-batch", "[traces]") {
  const TraceSummary summary = summary_of(
      {op("forward", R"("name":"mm","unit":"A")", 0), pack("A", "s0", 0),
       op("forward", R"("name":"mm","unit":"A")", 1), op("forward", R"("name":"mm","unit":"A")", 1),
       pack("A", "s1", 1), op("forward", R"("name":"sum","unit":null)", 1), unpack("s1"),
       R"({"kind":"holder_free","slot":"s1"})", unpack("s1")});
  REQUIRE(summary.units.size() == 2);
  CHECK(summary.units[0].microbatch == 0);
  CHECK(numbers(summary.units[0]) == std::vector<std::int64_t>{1, 0, 1, 0, 0});
  CHECK(summary.units[1].microbatch == 1);
  // Two ops: the one of no unit has no row. One unpack: the second asks for a slot that is gone.
  CHECK(numbers(summary.units[1]) == std::vector<std::int64_t>{2, 0, 1, 1, 0});
}

TEST_CASE("A summary sets hook-made ops and detach apart", "[traces]") {
  const TraceSummary summary =
      summary_of({op("replay", R"("name":"aten.detach.default","internal":"repack","unit":"A")"),
                  op("replay", R"("name":"aten.detach.default","internal":null,"unit":"A")"),
                  op("replay", R"("name":"aten.clone.default","internal":"pack","unit":"A")"),
                  op("replay", R"("name":"aten.sin.default","internal":null,"unit":"A")")});
  CHECK(summary.ops == std::map<Phase, Counts>{{Phase::replay, {{"aten.sin.default", 1}}}});
  CHECK(summary.hook_ops ==
        std::map<Phase, Counts>{
            {Phase::replay, {{"aten.clone.default", 1}, {"aten.detach.default", 1}}}});
  CHECK(summary.detaches == std::map<Phase, std::int64_t>{{Phase::replay, 1}});
  CHECK(summary.units.at(0).ops_replay == 1);
}

TEST_CASE("A summary counts bytes by storage, without the recorder's own count", "[traces]") {
  const TraceSummary summary = summary_of(
      {R"({"kind":"storage_alloc","phase":"setup","storage":0,"bytes":100,"role":"op"})",
       R"({"kind":"role","phase":"setup","storage":0,"role":"param"})",
       R"({"kind":"storage_alloc","phase":"forward","storage":1,"bytes":60,"role":"op"})",
       // A view of it adds nothing.
       R"({"kind":"op","name":"view","outputs":[{"t":1,"s":1,"bytes":30},{"t":2,"s":1}]})",
       R"({"kind":"phase_end","phase":"forward","microbatch":3})",
       R"({"kind":"storage_alloc","phase":"backward","storage":2,"bytes":30,"role":"op"})",
       R"({"kind":"storage_free","phase":"backward","storage":1})",
       R"({"kind":"role","phase":"setup","storage":2,"role":"grad"})"});
  REQUIRE(summary.resident.size() == 1);
  CHECK(summary.resident[0].microbatch == 3);
  CHECK(summary.resident[0].bytes == 60);    // the parameter's 100 are left out
  CHECK(summary.peak == ByteCount{90, 60});  // 60 + 30, the 30 are a gradient
  CHECK(summary.peak_by_phase.at(Phase::setup) == ByteCount{30, 0});
  CHECK(summary.live_at_end == 30);
}

TEST_CASE("A summary without storage events knows no bytes", "[traces]") {
  const json summary = json::parse(
      summary_json(summary_of({R"({"kind":"phase_end","phase":"forward","microbatch":0})"})));
  CHECK(summary.at("peak_bytes").is_null());
  CHECK(summary.at("live_bytes_at_end").is_null());
  CHECK(summary.at("resident_bytes") == json::array());
}

TEST_CASE("A summary of a hand-made trace names what was not recorded", "[traces]") {
  const TraceSummary summary = summary_of(
      {R"({"kind":"op","name":"mm","inputs":[],"outputs":[],"unit":"A"})",
       R"({"kind":"pack","slot":"A.0","held":"saved","unit":"A","tensor":{"value":"w"}})",
       R"({"kind":"unit_begin","unit":"A","exec":"replay","gid":["session","g1"]})",
       R"({"kind":"unpack","slot":"A.0","by":"mm.dx","gid":["session","g1"]})",
       R"({"kind":"sac_decide","op":"mm","saved":true})", R"({"kind":"sac_decide","op":"add"})",
       R"({"kind":"sac_hit","op":"mm"})", R"({"kind":"error","type":"ValueError","label":"again"})",
       R"({"kind":"no_error","label":"quiet"})", R"({"kind":"step_end"})"});
  CHECK(summary.steps == 1);
  CHECK(summary.packs_by_held == Counts{{"saved:None", 1}});
  CHECK(summary.unpacks == Counts{{"None", 1}});
  CHECK(summary.replays == Counts{{"A", 1}});
  CHECK(summary.sac_saved == 1);
  CHECK(summary.sac_hits == 1);
  CHECK(to_json(summary).at("errors").dump() == R"([{"seq":8,"type":"ValueError","label":"again"},)"
                                                R"({"seq":9,"type":null,"label":"quiet"}])");
  CHECK(numbers(summary.units.at(0)) == std::vector<std::int64_t>{1, 0, 1, 1, 1});
}

TEST_CASE("A summary's JSON has its keys in a fixed order", "[traces]") {
  std::vector<std::string> keys;
  const auto object = to_json(summary_of(nested_units()));
  for (const auto& [key, value] : object.items())
    keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"events",
                                         "steps",
                                         "ops",
                                         "hook_ops",
                                         "detach_ops",
                                         "packs_by_unit",
                                         "packs_by_held",
                                         "unpacks",
                                         "replays",
                                         "replay_order",
                                         "early_stops",
                                         "errors",
                                         "sac_saved",
                                         "sac_hits",
                                         "resident_bytes",
                                         "peak_bytes",
                                         "peak_bytes_by_phase",
                                         "peak_bytes_excluding_gradients",
                                         "peak_bytes_excluding_gradients_by_phase",
                                         "live_bytes_at_end",
                                         "units"});
  CHECK(object.at("early_stops").dump() ==
        R"([{"seq":10,"unit":"outer","inv":0,"after_packs":1,"of":1,"after_ops":2}])");
}

TEST_CASE("A summary's text is a table for people", "[traces]") {
  auto events = nested_units();
  events.push_back(R"({"kind":"storage_alloc","phase":"forward","storage":0,"bytes":1536})");
  events.push_back(R"({"kind":"phase_end","phase":"forward","microbatch":0})");
  const std::string text = summary_text(summary_of(events));
  // 1536 B = 1.5 KiB; the last phase of the trace is forward, so only there something lives.
  CHECK("\n" + text == R"(
events        17, steps 0
phase                ops  hook ops   detach         peak less gradients
forward                2         0        0      1.5 KiB        1.5 KiB
replay                 3         0        0          0 B            0 B
backward               0         0        0          0 B            0 B
peak          1.5 KiB, without gradients 1.5 KiB
after forward micro-batch 0: 1.5 KiB
packs         3: 3 placeholder:checkpointed
unpacks       2: 2 recomputed
replays       2: outer#0, outer/inner#0
early stops   1
unit            micro-batch  forward   replay   packs  unpacks  replays
outer                     0        1        1       1        1        1
outer/inner               0        1        2       2        1        1
)");
}

namespace {

json counts_with_detach(const TraceSummary& summary) {
  json ops = json::object();
  for (const auto& [phase, counts] : summary.ops)
    ops[std::string(name_of(phase))] = counts;
  for (const auto& [phase, n] : summary.detaches)
    ops[std::string(name_of(phase))]["aten.detach.default"] = n;
  return ops;
}

/// The rows of a list of objects as lists of values, without the columns that `truth` has not.
json rows_as_lists(const nlohmann::ordered_json& rows, const std::vector<std::string>& left_out) {
  json lists = json::array();
  for (const auto& row : rows) {
    json values = json::array();
    for (const auto& [key, value] : row.items()) {
      const bool kept = std::find(left_out.begin(), left_out.end(), key) == left_out.end();
      if (kept) values.push_back(json::parse(value.dump()));
    }
    lists.push_back(values);
  }
  return lists;
}

/// The summary under the names of the measured totals.
json as_truth(const TraceSummary& summary, bool mindspore) {
  const auto object = to_json(summary);
  const auto copy = [&](const char* key) { return json::parse(object.at(key).dump()); };
  const std::vector<std::string> no_column;
  const std::vector<std::string> call = {"seq", "inv"};
  return {{"n_events", summary.events},
          {"ops_per_phase", counts_with_detach(summary)},
          {"internal_ops_per_phase", copy("hook_ops")},
          {"packs_per_unit", summary.packs_by_unit},
          {"packs_by_held", summary.packs_by_held},
          {"unpacks", summary.unpacks},
          {"replays_per_unit", summary.replays},
          {"replay_order", rows_as_lists(object.at("replay_order"), no_column)},
          {"early_stops", rows_as_lists(object.at("early_stops"), mindspore ? call : no_column)},
          {"bytes_end_forward", rows_as_lists(object.at("resident_bytes"), no_column)},
          {"peak_bytes", copy("peak_bytes")},
          {"peak_bytes_per_phase", copy("peak_bytes_by_phase")},
          {"peak_bytes_excluding_grads", copy("peak_bytes_excluding_gradients")},
          {"peak_bytes_excluding_grads_per_phase", copy("peak_bytes_excluding_gradients_by_phase")},
          {"live_at_end", copy("live_bytes_at_end")},
          {"n_sac_saved", summary.sac_saved},
          {"n_sac_hit", summary.sac_hits}};
}

void hold_errors_against(const json& truth, const TraceSummary& summary) {
  REQUIRE(summary.errors.size() == truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const json& expected = truth[i];
    CHECK(json(summary.errors[i].label) == expected.at("label"));
    CHECK((summary.errors[i].type ? json(*summary.errors[i].type) : json()) == expected.at("type"));
    if (expected.contains("seq")) CHECK(json(summary.errors[i].seq) == expected.at("seq"));
  }
}

/// Every recording of a folder against its measured totals, field by field; how many there were.
std::size_t hold_against_truth(const fs::path& folder) {
  const json truths = json::parse(std::ifstream(folder / "truth.json"));
  for (const auto& [name, truth] : truths.items()) {
    INFO(name);
    const fs::path file = folder / truth.at("file").get<std::string>();
    const TraceSummary summary = summary_read_from(TraceReader(file.string()));
    const json measured = as_truth(summary, truth.value("framework", "") == "mindspore");
    for (const auto& [field, value] : measured.items()) {
      INFO(field);
      if (truth.contains(field)) CHECK(value == truth.at(field));
    }
    hold_errors_against(truth.at("errors"), summary);
  }
  return truths.size();
}

/// Without measured totals: the recorder's own counts at the ends of forward phases.
void hold_against_recorder(const fs::path& file) {
  INFO(file.string());
  const Trace trace = read_trace(file.string());
  SummaryBuilder builder;
  std::vector<std::int64_t> counted;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    builder.observe(trace[i]);
    if (trace[i].kind() == Kind::phase_end && trace[i].phase() == Phase::forward)
      if (const auto live = trace[i].integer(Field::live)) counted.push_back(*live);
  }
  std::vector<std::int64_t> computed;
  for (const ResidentBytes& resident : builder.finish().resident)
    computed.push_back(resident.bytes);
  CHECK(computed == counted);
}

}  // namespace

TEST_CASE("A summary equals the measured totals of every recording", "[traces]") {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path shared = given != nullptr ? given : REMATSIM_SHARED_DEFAULT;
  if (fs::exists(shared / "data/recorded/truth.json")) {
    CHECK(hold_against_truth(shared / "data/recorded") > 0);
    CHECK(hold_against_truth(shared / "data/hyperparallel") > 0);
    return;
  }
  WARN("no " << (shared / "data/recorded").string()
             << ": held traces/recorded against the recorder's own counts instead");
  const fs::path shipped = fs::path(REMATSIM_SOURCE_DIR) / "traces/recorded";
  for (const auto& entry : fs::directory_iterator(shipped))
    if (entry.path().string().ends_with(".jsonl.gz")) hold_against_recorder(entry.path());
}
