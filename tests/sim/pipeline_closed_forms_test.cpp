#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>

#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_registry.hpp"
#include "schedules/replay_placement.hpp"
#include "sim/pipeline_figures.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

using Row = std::map<std::string, std::string>;

const std::map<std::string, std::string> generators = {{"GPipe", "gpipe"},
                                                       {"1F1B", "1f1b"},
                                                       {"Interleaved1F1B", "interleaved-1f1b"},
                                                       {"Interleaved", "interleaved-1f1b"},
                                                       {"LoopedBFS", "looped-bfs"},
                                                       {"InterleavedZeroBubble", "interleaved-zb"},
                                                       {"ZBH1", "zb-h1"},
                                                       {"ZBH2", "zb-h2"},
                                                       {"ZBVZeroBubble", "zb-v"},
                                                       {"ZBV", "zb-v"},
                                                       {"DualPipe", "dualpipe"},
                                                       {"DualPipeV", "dualpipe-v"}};

PipelineSettings settings_of(const Row& row) {
  PipelineSettings settings;
  set_costs("F=" + row.at("F") + ",DX=" + row.at("I") + ",DW=" + row.at("W"), settings.costs);
  return settings;
}

PipelineLists generated(const std::string& name, std::int64_t ranks, std::int64_t microbatches,
                        std::int64_t chunks) {
  const PipelineRow* row = pipeline_named(name);
  REQUIRE(row != nullptr);
  PipelineRequest request = {.ranks = ranks, .microbatches = microbatches};
  if (row->chunks == PipelineRow::Chunks::any) request.chunks = chunks;
  return make_pipeline(*row, request);
}

/// The order that a row of closed_forms.csv measured; none where we have it from nowhere: orders
/// that a scheduler made for other costs.
std::optional<PipelineLists> measured_order(const std::string& folder, const Row& row) {
  const std::string& source = row.at("source");
  if (source == "torch" || source == "ref" || source == "dsk") {
    return generated(generators.at(row.at("schedule")), std::stoll(row.at("P")),
                     std::stoll(row.at("M")), std::stoll(row.at("V")));
  }
  if (source != "sail" && source != "sail_unit") return std::nullopt;
  const std::string file = folder + "tables/sail_" + row.at("schedule") + "_P" + row.at("P") +
                           "_M" + row.at("M") + "_V" + row.at("V") + ".csv";
  const std::string text = text_of(file);
  return text.empty() ? std::nullopt : std::optional(read_pipeline_lists(file, text));
}

PipelineFigures figures(const PipelineLists& lists, const PipelineSettings& settings) {
  const PipelineRun run = run_pipeline(lists, settings);
  REQUIRE(run.is_finished());
  return figures_of(lists, run);
}

/// A pipeline, and what a stage costs.
struct Case {
  std::int64_t ranks = 1;
  std::int64_t microbatches = 1;
  std::int64_t f = 1;
  std::int64_t dx = 1;
  std::int64_t dw = 1;
  std::int64_t latency = 0;
};

Row costs_row(const Case& each) {
  return {{"F", std::to_string(each.f)},
          {"I", std::to_string(each.dx)},
          {"W", std::to_string(each.dw)}};
}

/// Makespan of a schedule with two chunks where it has several.
std::int64_t makespan(const std::string& name, const Case& each, const std::string& replay) {
  PipelineSettings settings = settings_of(costs_row(each));
  settings.costs.latency = each.latency;
  settings.on_demand = replay == "ondemand";
  PipelineLists lists = generated(name, each.ranks, each.microbatches, 2);
  if (replay != "none") lists = with_replays(lists, 0);
  return figures(lists, settings).makespan;
}

}  // namespace

TEST_CASE("bubbles are those that were measured beside the published formulas", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  int n_compared = 0;
  for (const Row& row : csv_rows(*shared + "closed_forms.csv")) {
    const auto lists = measured_order(*shared, row);
    if (!lists) continue;
    CAPTURE(row);
    const PipelineFigures got = figures(*lists, settings_of(row));
    CHECK(static_cast<double>(got.bubble) == std::stod(row.at("bubble_makespan")));
    CHECK(static_cast<double>(got.span_bubble) == std::stod(row.at("bubble_span")));
    ++n_compared;
  }
  CHECK(n_compared > 400);
}

TEST_CASE("replay makes the makespans of an independent evaluator's closed forms", "[sim]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  int n_compared = 0;
  for (const Row& row : csv_rows(*shared + "recompute_closed_forms.csv")) {
    // "1F1B none", "ZBV pre (F=I=W)"
    const std::string& name = row.at("case");
    const std::size_t first = name.find(' ');
    const std::size_t second = std::min(name.find_first_of(" ,", first + 1), name.size());
    CAPTURE(row);
    Row costs = row;
    PipelineSettings settings = settings_of(costs);
    settings.costs.latency = std::stoll(row.at("comm"));
    const std::string replay = name.substr(first + 1, second - first - 1);
    settings.on_demand = replay == "ondemand";
    PipelineLists lists = generated(generators.at(name.substr(0, first)), std::stoll(row.at("P")),
                                    std::stoll(row.at("M")), std::stoll(row.at("V")));
    if (replay != "none") lists = with_replays(lists, 0);
    CHECK(figures(lists, settings).makespan == std::stoll(row.at("measured")));
    ++n_compared;
  }
  CHECK(n_compared > 3000);
}

TEST_CASE("1f1b and gpipe take the time of their closed forms", "[sim]") {
  for (std::int64_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::int64_t microbatches = 1; microbatches <= 12; ++microbatches) {
      for (const std::int64_t latency : {0, 1, 7, 40}) {
        const Case at = {.ranks = ranks,
                         .microbatches = microbatches,
                         .f = 10,
                         .dx = 12,
                         .dw = 8,
                         .latency = latency};
        CAPTURE(ranks, microbatches, latency);
        const std::int64_t rounds = microbatches + ranks - 1;
        const std::int64_t k = (microbatches - 1 + ranks - 1) / ranks;
        const std::int64_t ways = 2 * (ranks - 1) + 2 * (microbatches - 1 - k);
        // F + B is 30, R is 10. One rank has no way to anywhere.
        if (ranks > 1) {
          CHECK(makespan("1f1b", at, "none") == rounds * 30 + latency * ways);
          CHECK(makespan("1f1b", at, "ondemand") == rounds * 40 + latency * ways);
          CHECK(makespan("1f1b", at, "pre") ==
                rounds * 30 + 2 * (ranks - 1) * latency + (1 + k) * 10 +
                    (microbatches - 1 - k) * std::max<std::int64_t>(10, 2 * latency));
        }
        CHECK(makespan("gpipe", at, "none") == rounds * 30 + 2 * (ranks - 1) * latency);
        CHECK(makespan("gpipe", at, "ondemand") == rounds * 40 + 2 * (ranks - 1) * latency);
        CHECK(makespan("gpipe", at, "pre") ==
              microbatches * 40 + (ranks - 1) * 30 + 2 * (ranks - 1) * latency);
      }
    }
  }
}

TEST_CASE("zb-h1 and zb-h2 have the bubbles of their closed forms", "[sim]") {
  for (const auto& [f, i, w] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>(1, 1, 1),
                                {10, 12, 8},
                                {10, 8, 12},
                                {10, 15, 5},
                                {3, 9, 1}}) {
    for (std::int64_t ranks = 2; ranks <= 5; ++ranks) {
      const Case at = {.ranks = ranks, .microbatches = 2 * ranks + 1, .f = f, .dx = i, .dw = w};
      CAPTURE(f, i, w, ranks);
      const std::int64_t busy = at.microbatches * (f + i + w);
      CHECK(makespan("zb-h1", at, "none") - busy == (ranks - 1) * std::max({f, i, f + i - w}));
      CHECK(makespan("zb-h2", at, "none") - busy ==
            (ranks - 1) * std::max({f, i - f, f + i - 2 * w}));
    }
  }
}

TEST_CASE("a pre-triggered replay is never later than the same on demand", "[sim]") {
  for (const PipelineRow& row : pipelines()) {
    for (const std::int64_t latency : {0, 5, 30}) {
      const Case at = {
          .ranks = 4, .microbatches = 8, .f = 10, .dx = 12, .dw = 8, .latency = latency};
      CAPTURE(row.name, latency);
      CHECK(makespan(std::string(row.name), at, "pre") <=
            makespan(std::string(row.name), at, "ondemand"));
    }
  }
}

TEST_CASE("a replay one place earlier can be later: the smallest case", "[sim]") {
  PipelineSettings settings;
  set_costs("F=1,DX=1,DW=1,COMM=1", settings.costs);
  const PipelineLists lists = generated("1f1b", 2, 3, 1);
  CHECK(figures(with_replays(lists, 0), settings).makespan == 18);
  CHECK(figures(with_replays(lists, 1), settings).makespan == 19);
}

TEST_CASE("every schedule finishes at every small size, on demand too", "[sim]") {
  for (const PipelineRow& row : pipelines()) {
    for (std::int64_t ranks = row.is_bidirectional ? 2 : 1; ranks <= 6; ++ranks) {
      for (std::int64_t microbatches = 1; microbatches <= 13; ++microbatches) {
        if (row.is_bidirectional && (ranks % 2 != 0 || microbatches % 2 != 0)) continue;
        CAPTURE(row.name, ranks, microbatches);
        const PipelineLists lists = generated(std::string(row.name), ranks, microbatches, 2);
        PipelineSettings settings;
        settings.on_demand = true;
        CHECK(run_pipeline(lists, settings).is_finished());
        CHECK(run_pipeline(with_replays(lists, 0), settings).is_finished());
      }
    }
  }
}
