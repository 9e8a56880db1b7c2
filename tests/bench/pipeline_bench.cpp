#include "tests/bench/pipeline_bench.hpp"

#include <fmt/format.h>

#include <string>

#include "schedules/pipeline_lowering.hpp"
#include "schedules/pipeline_registry.hpp"
#include "schedules/replay_placement.hpp"
#include "sim/pipeline_figures.hpp"

namespace remat {
namespace {

constexpr int rounds = 5;
/// CPU time that a schedule of P=64, M=512, V=2 with replay may take.
constexpr double target_seconds = 0.3;

PipelineLists large_lists() {
  const PipelineRow* row = pipeline_named("interleaved-1f1b");
  return with_replays(make_pipeline(*row, {.ranks = 64, .microbatches = 512, .chunks = 2}), 0);
}

PipelineSettings settings() {
  PipelineSettings settings;
  set_costs("F=10,DX=12,DW=8,COMM=1", settings.costs);
  return settings;
}

std::string what_was_run(const PipelineLists& lists) {
  const PipelineRun run = run_pipeline(lists, settings());
  return fmt::format("interleaved-1f1b, P=64, M=512, V=2: {} actions, makespan {}",
                     n_actions(lists), figures_of(lists, run).makespan);
}

}  // namespace

std::vector<BenchResult> pipeline_bench() {
  const double plain = cpu_seconds(rounds, [] {
    const PipelineLists lists = large_lists();
    figures_of(lists, run_pipeline(lists, settings()));
  });
  const double with_messages = cpu_seconds(rounds, [] {
    const auto lists = lowered(large_lists(), Lowering::torch, false);
    PipelineSettings queued = settings();
    queued.channel.kind = ChannelKind::one_fifo;
    figures_of(*lists, run_pipeline(*lists, queued));
  });
  return {
      {"a pipeline schedule with replay, made and run", plain, "CPU s",
       fmt::format("<= {}", target_seconds), plain <= target_seconds, what_was_run(large_lists())},
      {"the same with messages in one queue a rank", with_messages, "CPU s", "recorded", true,
       "lowered as torch does, channel one-fifo"}};
}

}  // namespace remat
