#include "cli/schedule_command.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/schedule_outcome.hpp"
#include "model/errors.hpp"
#include "schedules/pipeline_checks.hpp"
#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_lowering.hpp"
#include "schedules/pipeline_registry.hpp"
#include "schedules/replay_placement.hpp"
#include "traces/output_file.hpp"
#include "traces/whole_text.hpp"

namespace remat {
namespace {

/// Lists of a few million actions run in seconds; what is longer is no schedule.
constexpr std::size_t file_mib_max = 32;
constexpr std::size_t actions_max = std::size_t{1} << 22U;
/// Complaints of one check that are told.
constexpr std::size_t complaints_max = 5;

void refuse_shape(const ScheduleOptions& options) {
  for (const auto& [name, given] : {std::pair("--ranks", options.ranks),
                                    {"--microbatches", options.microbatches},
                                    {"--chunks", options.chunks},
                                    {"--slices", options.slices}}) {
    if (given) throw InputError(std::string(name) + ": a file of lists says that itself");
  }
}

std::int64_t required(const char* option, const std::optional<std::int64_t>& given) {
  if (!given) throw InputError(std::string(option) + " is missing; expected a number");
  return *given;
}

PipelineLists source_lists(const ScheduleOptions& options) {
  if (const PipelineRow* row = pipeline_named(options.source)) {
    return make_pipeline(*row, {.ranks = required("--ranks", options.ranks),
                                .microbatches = required("--microbatches", options.microbatches),
                                .chunks = options.chunks,
                                .slices = options.slices.value_or(1)});
  }
  std::error_code error;
  if (options.source != "-" && !std::filesystem::exists(options.source, error)) {
    throw InputError("'" + options.source + "' is neither a schedule nor a file; expected one of " +
                     known_pipelines() + ", or a file");
  }
  refuse_shape(options);
  PipelineLists lists = read_pipeline_lists(
      shown_path(options.source), whole_text(options.source, file_mib_max, "lists of actions"));
  if (n_actions(lists) > actions_max) {
    throw InputError(shown_path(options.source) + ": " + std::to_string(n_actions(lists)) +
                     " actions; expected at most " + std::to_string(actions_max));
  }
  return lists;
}

bool is_message(Work work) {
  return is_send(work) || is_recv(work) || is_wait_send(work);
}
bool is_replay(Work work) {
  return work == Work::replay;
}

PipelineLists replayed_lists(const ScheduleOptions& options) {
  PipelineLists lists = source_lists(options);
  const bool is_placed = options.replay == "pre-trigger";
  if (options.replay != "none" && options.replay != "on-demand" && !is_placed) {
    throw InputError("--replay: '" + options.replay +
                     "' is unknown; expected none, on-demand or pre-trigger");
  }
  if (options.distance && !is_placed)
    throw InputError("--distance is for --replay pre-trigger only");
  const std::int64_t distance = options.distance.value_or(0);
  if (distance < 0) {
    throw InputError("--distance: " + std::to_string(distance) + " is below 0; expected 0 or more");
  }
  if (has_work(lists, is_replay)) {
    if (options.distance)
      throw InputError("--distance: the lists have R's already, which stay where they are");
    return lists;
  }
  if (options.replay == "none") return lists;
  if (has_work(lists, is_message))
    throw InputError("--replay: the lists have messages already; expected compute alone, or R's");
  return with_replays(lists, distance);
}

PipelineCosts costs_of(const ScheduleOptions& options) {
  PipelineCosts costs;
  if (!options.costs_file.empty()) {
    read_costs(shown_path(options.costs_file),
               whole_text(options.costs_file, file_mib_max, "costs"), costs);
  }
  if (!options.cost.empty()) set_costs(options.cost, costs);
  return costs;
}

/// "4" or "4.25" as hundredths.
std::int64_t memory_limit(const std::string& text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point);
  const std::string decimals = point < text.size() ? text.substr(point + 1) : "0";
  constexpr std::size_t decimals_max = 2;
  const bool is_short = !decimals.empty() && decimals.size() <= decimals_max;
  digits += decimals + std::string(is_short ? decimals_max - decimals.size() : 0, '0');
  std::int64_t limit = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (!is_whole || !is_short || point == 0 || limit < 0) {
    throw InputError("--memory-limit: '" + text +
                     "' is no number of activations; expected one like 4 or 4.25");
  }
  return limit;
}

PipelineSettings settings_of(const ScheduleOptions& options) {
  PipelineSettings settings;
  settings.costs = costs_of(options);
  const auto channel = channel_named(options.channel);
  if (!channel) {
    throw InputError("--channel: '" + options.channel + "' is unknown; expected one of " +
                     std::string(known_channels));
  }
  settings.channel = *channel;
  settings.on_demand = options.replay == "on-demand";
  if (options.freed_at_dx < 0 || options.freed_at_dx > whole_activation) {
    throw InputError("--freed-at-dx: " + std::to_string(options.freed_at_dx) +
                     " is no percentage; expected 0 to 100");
  }
  settings.freed_early.by_dx = options.freed_at_dx;
  if (!options.memory_limit.empty()) settings.memory_limit = memory_limit(options.memory_limit);
  return settings;
}

std::optional<Lowering> lowering_named(const std::string& name) {
  if (name == "naive") return Lowering::naive;
  if (name == "torch") return Lowering::torch;
  if (name == "torch-deferred") return Lowering::torch_deferred;
  if (name.empty()) return std::nullopt;
  throw InputError("--lowering: '" + name +
                   "' is unknown; expected naive, torch or torch-deferred");
}

/// Puts messages in where they are asked for, or where the channel has nothing to do without.
void lower(const ScheduleOptions& options, const PipelineSettings& settings,
           ScheduleOutcome& outcome) {
  auto lowering = lowering_named(options.lowering);
  outcome.lowering = lowering ? options.lowering : "none";
  if (has_work(outcome.lists, is_message)) {
    if (lowering) throw InputError("--lowering: the lists have messages already");
    return;
  }
  if (!lowering && settings.channel.kind != ChannelKind::async) {
    lowering = Lowering::naive;
    outcome.lowering = "naive";
  }
  if (!lowering) return;
  // Where no order of messages is found, the lists alone show why.
  if (auto with_messages = lowered(outcome.lists, *lowering, settings.on_demand))
    outcome.lists = std::move(*with_messages);
}

PipelineLists without_messages(PipelineLists lists) {
  for (RankList& list : lists.ranks) {
    for (PipelineAction& action : list)
      if (action.joined == Joined::batched) action.joined = Joined::no;
    std::erase_if(list, [](const PipelineAction& action) { return is_message(action.work); });
  }
  return lists;
}

bool finishes(const PipelineLists& lists, PipelineSettings settings) {
  settings.memory_limit.reset();
  return run_pipeline(lists, settings).is_finished();
}

bool is_within_memory(const ScheduleOutcome& outcome, const PipelineSettings& settings) {
  return !settings.memory_limit ||
         std::all_of(outcome.run.memory.begin(), outcome.run.memory.end(),
                     [&](const RankMemory& rank) { return rank.peak <= *settings.memory_limit; });
}

void check(const PipelineSettings& settings, ScheduleOutcome& outcome) {
  bool is_complete = true;
  bool do_collectives_agree = true;
  for (const ListComplaint& complaint : complaints_about(outcome.lists, complaints_max)) {
    (complaint.check == ListCheck::complete ? is_complete : do_collectives_agree) = false;
    outcome.complaints.push_back(complaint.message);
  }
  const bool is_finished = outcome.run.is_finished();
  PipelineSettings alone = settings;
  alone.ignores_missing = true;
  const bool is_acyclic = is_finished || finishes(without_messages(outcome.lists), alone);
  outcome.checks = {{std::string(name_of(ListCheck::complete)), is_complete},
                    {"acyclic", is_acyclic},
                    {"channel", is_finished || finishes(outcome.lists, settings)},
                    {"memory", is_within_memory(outcome, settings)},
                    {std::string(name_of(ListCheck::collectives_agree)), do_collectives_agree}};
}

ScheduleOutcome outcome_of(const ScheduleOptions& options) {
  ScheduleOutcome outcome;
  outcome.name = options.source;
  outcome.replay = options.replay;
  outcome.channel = options.channel;
  const PipelineSettings settings = settings_of(options);
  outcome.lists = replayed_lists(options);
  require_costs_for(settings.costs, extent_of(outcome.lists));
  lower(options, settings, outcome);
  outcome.run = run_pipeline(outcome.lists, settings);
  if (outcome.run.is_finished()) outcome.figures = figures_of(outcome.lists, outcome.run);
  check(settings, outcome);
  return outcome;
}

}  // namespace

ExitCode schedule_command(const ScheduleOptions& options) {
  const ScheduleOutcome outcome = outcome_of(options);
  OutputFile file(options.output);
  file.write(options.csv    ? lists_csv(outcome.lists)
             : options.json ? schedule_json(outcome, options.list)
                            : schedule_text(outcome, options.list));
  file.commit();
  return outcome.is_valid() ? ExitCode::fine : ExitCode::found;
}

}  // namespace remat
