#include "sim/pipeline_run.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "schedules/action_table.hpp"
#include "schedules/pipeline_lists_text.hpp"
#include "sim/pipeline_figures.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

PipelineLists lists_of(const std::string& csv) {
  return read_pipeline_lists("lists.csv", csv);
}

PipelineSettings with_cost(const std::string& cost, bool on_demand = false) {
  PipelineSettings settings;
  set_costs(cost, settings.costs);
  settings.on_demand = on_demand;
  return settings;
}

std::int64_t makespan(const std::string& csv, const PipelineSettings& settings) {
  const PipelineRun run = run_pipeline(lists_of(csv), settings);
  REQUIRE(run.is_finished());
  return figures_of(lists_of(csv), run).makespan;
}

/// The three cost models of the golden files. stage_c1 times 1, 1.5 and 2, stage modulo 3.
PipelineSettings golden_costs(const std::string& model) {
  if (model == "unit_c0") return with_cost("F=1,DX=1,DW=1,COMM=0");
  if (model == "u10_12_8_c5") return with_cost("F=10,DX=12,DW=8,COMM=5");
  REQUIRE(model == "stage_c1");
  PipelineSettings settings = with_cost("COMM=1");
  std::vector<std::vector<std::int64_t>> f;
  std::vector<std::vector<std::int64_t>> dx;
  std::vector<std::vector<std::int64_t>> dw;
  for (std::int64_t stage = 0; stage < 16; ++stage) {
    const std::int64_t halves = 2 + stage % 3;
    f.push_back({5 * halves});
    dx.push_back({6 * halves});
    dw.push_back({4 * halves});
  }
  settings.costs.forward = WorkCost(f);
  settings.costs.dx = WorkCost(dx);
  settings.costs.dw = WorkCost(dw);
  return settings;
}

/// Times of a golden file, by what runs.
std::map<std::string, ActionTimes> golden_times(const std::string& path) {
  static const std::map<std::string, Work> works = {{"F", Work::forward},
                                                    {"B", Work::backward},
                                                    {"I", Work::dx},
                                                    {"W", Work::dw},
                                                    {"R", Work::replay}};
  std::map<std::string, ActionTimes> times;
  for (const auto& row : csv_rows(path)) {
    const PipelineAction action = {.work = works.at(row.at("op")),
                                   .pipe = static_cast<std::uint16_t>(std::stoi(row.at("pipe"))),
                                   .stage = std::stoi(row.at("stage")),
                                   .microbatch = std::stoi(row.at("mb")),
                                   .slice = std::stoi(row.at("seq"))};
    times[name_of(action)] = {std::stoll(row.at("start")), std::stoll(row.at("end"))};
  }
  return times;
}

std::int64_t hundredths(double activations) {
  return std::llround(100 * activations);
}

std::map<std::string, ActionTimes> own_times(const PipelineLists& lists, const PipelineRun& run) {
  std::map<std::string, ActionTimes> times;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < lists.ranks[rank].size(); ++i)
      times[name_of(lists.ranks[rank][i])] = run.times[rank][i];
  }
  return times;
}

}  // namespace

namespace Catch {
template <>
struct StringMaker<remat::ActionTimes> {
  static std::string convert(const remat::ActionTimes& times) {
    return std::to_string(times.start) + " to " + std::to_string(times.end);
  }
};
}  // namespace Catch

TEST_CASE("an action starts when its rank is free and its inputs are there", "[sim]") {
  // F0.0 0-2, then 3 on the way: F1.0 5-7, B1.0 7-10 (DX and DW), 3 on the way: B0.0 13-16.
  CHECK(makespan("0F0,0B0\n1F0,1B0\n", with_cost("F=2,DX=1,DW=2,COMM=3")) == 16);
  // Two stages on one rank have no way between them.
  CHECK(makespan("0F0,1F0,1B0,0B0\n", with_cost("F=2,DX=1,DW=2,COMM=3")) == 10);
}

TEST_CASE("DX lets the stage before go on, DW does not", "[sim]") {
  // F0 0-1, F1 1-2, DX1 2-3, DX0 3-4 beside DW1 3-4, DW0 4-5.
  CHECK(makespan("0F0,0I0,0W0\n1F0,1I0,1W0\n", with_cost("F=1,DX=1,DW=1")) == 5);
}

TEST_CASE("an overlapped pair waits for both inputs, then runs one behind the other", "[sim]") {
  const PipelineLists lists = lists_of("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
  const PipelineRun run = run_pipeline(lists, with_cost("F=1,B=2"));
  // B1.0 ends at 4, and F0.1, which could have run before, starts with it.
  CHECK(run.times[0] == std::vector<ActionTimes>{{0, 1}, {4, 5}, {5, 7}, {8, 10}});
}

TEST_CASE("a replay on demand waits for the gradient, a pre-triggered one does not", "[sim]") {
  const std::string csv = "0F0,0R0,0B0\n1F0,1R0,1B0\n";
  // F0 0-1, F1 1-2, R1 2-3, B1 3-5; R0 5-6 or long before; B0 2 more.
  CHECK(makespan(csv, with_cost("F=1,B=2", true)) == 8);
  CHECK(makespan(csv, with_cost("F=1,B=2", false)) == 7);
}

TEST_CASE("every start and end is that of an independent evaluator", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  const std::string folder = *shared + "golden/";
  int n_compared = 0;
  for (const std::string& file : csv_files_in(folder)) {
    const std::size_t cut = file.find("__");
    if (cut == std::string::npos) continue;
    CAPTURE(file);
    const std::string order = file.substr(0, cut);
    PipelineSettings settings =
        golden_costs(file.substr(cut + 2, file.size() - cut - 2 - std::string(".csv").size()));
    settings.on_demand = order.ends_with("_Rondemand");
    const PipelineLists lists = read_pipeline_lists(order, text_of(folder + order + ".order.csv"));
    const PipelineRun run = run_pipeline(lists, settings);
    REQUIRE(run.is_finished());
    CHECK(own_times(lists, run) == golden_times(folder + file));
    ++n_compared;
  }
  CHECK(n_compared > 100);
}

TEST_CASE("makespan, work and peaks are those of an independent evaluator", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  const std::string folder = *shared + "golden/";
  const auto rows = nlohmann::json::parse(text_of(folder + "index.json"));
  for (const auto& row : rows) {
    const std::string tag = row["tag"];
    CAPTURE(tag, row["cost"]);
    PipelineSettings settings = golden_costs(row["cost"]);
    settings.on_demand = row["r_on_demand"];
    const PipelineLists lists = read_pipeline_lists(tag, text_of(folder + tag + ".order.csv"));
    const PipelineRun run = run_pipeline(lists, settings);
    REQUIRE(run.is_finished());
    const PipelineFigures figures = figures_of(lists, run);
    CHECK(figures.makespan == row["makespan"]);
    settings.freed_early.by_dx = whole_activation / 2;
    const std::vector<RankMemory> half = run_pipeline(lists, settings).memory;
    for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
      CAPTURE(rank);
      CHECK(figures.ranks[rank].busy == row["busy"][rank]);
      CHECK(run.memory[rank].peak == hundredths(row["peak_full"][rank]));
      CHECK(half[rank].peak == hundredths(row["peak_half"][rank]));
      if (!row["peak_ckpt"].is_null())
        CHECK(run.memory[rank].peak_checkpoints == row["peak_ckpt"][rank]);
    }
  }
}

TEST_CASE("bubble windows are the gaps, with what is held meanwhile", "[sim]") {
  const PipelineLists lists = lists_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const PipelineFigures figures = figures_of(lists, run_pipeline(lists, with_cost("F=1,B=2")));
  // Rank 0: F 0-1, F 1-2, then B1.0 ends at 4: B 4-6; B1.1 ends at 7: B 7-9.
  CHECK(figures.makespan == 9);
  CHECK(figures.bubble == 3);
  REQUIRE(figures.ranks[0].bubbles.size() == 2);
  CHECK(figures.ranks[0].bubbles[0].start == 2);
  CHECK(figures.ranks[0].bubbles[0].length == 2);
  CHECK(figures.ranks[0].bubbles[0].held == 200);
  CHECK(figures.ranks[0].bubbles[1].start == 6);
  CHECK(figures.ranks[0].bubbles[1].held == 100);
  REQUIRE(figures.ranks[1].bubbles.size() == 2);
  CHECK(figures.ranks[1].bubbles[0].length == 1);
  CHECK(figures.ranks[1].bubbles[1].start == 7);
  CHECK(figures.ranks[1].bubbles[1].length == 2);
  CHECK(figures.span_bubble == 3);
  CHECK(figures.bubble_fraction == Approx(6.0 / 18));
}

TEST_CASE("the critical path is what the makespan is due to, without gaps", "[sim]") {
  const PipelineLists lists = lists_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const PipelineRun run = run_pipeline(lists, with_cost("F=1,B=2"));
  const ActionTable table(lists);
  std::vector<std::string> names;
  for (const std::uint32_t action : run.critical_path)
    names.push_back(name_of(table[action]));
  CHECK(names == std::vector<std::string>{"F0.0", "F1.0", "B1.0", "F1.1", "B1.1", "B0.1"});
}
