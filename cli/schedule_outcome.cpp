#include "cli/schedule_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/schedule_picture.hpp"
#include "schedules/action_table.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

/// With the rank's name ahead, what a usual terminal shows in one line.
constexpr std::size_t picture_columns = 110;

/// Hundredths as a number: whole where it is.
Json activations_json(std::int64_t hundredths) {
  if (hundredths % whole_activation == 0) return hundredths / whole_activation;
  return static_cast<double>(hundredths) / static_cast<double>(whole_activation);
}
std::string activations_text(std::int64_t hundredths) {
  return activations_json(hundredths).dump();
}

Json lists_json(const PipelineLists& lists) {
  Json json = Json::array();
  for (const RankList& list : lists.ranks) {
    Json& names = json.emplace_back(Json::array());
    for (std::size_t first = 0; first < list.size(); first = group_end(list, first))
      names.push_back(group_name(list, first));
  }
  return json;
}

Json deadlock_json(const std::vector<Blocked>& deadlock) {
  Json json = Json::array();
  for (const Blocked& blocked : deadlock) {
    json.push_back(
        {{"rank", blocked.rank},
         {"action", blocked.action},
         {"waits_for", blocked.waits_for},
         {"waits_for_rank", blocked.waits_for_rank ? Json(*blocked.waits_for_rank) : Json(nullptr)},
         {"behind", blocked.behind.empty() ? Json(nullptr) : Json(blocked.behind)}});
  }
  return json;
}

Json times_json(const PipelineRun& run) {
  Json json = Json::array();
  for (const std::vector<ActionTimes>& times : run.times) {
    Json& rank = json.emplace_back(Json::array());
    for (const ActionTimes& action : times)
      rank.push_back({action.start, action.end});
  }
  return json;
}

Json bubbles_json(const PipelineFigures& figures) {
  Json json = Json::array();
  for (const RankFigures& rank : figures.ranks) {
    Json& windows = json.emplace_back(Json::array());
    for (const BubbleWindow& window : rank.bubbles) {
      windows.push_back({{"start", window.start},
                         {"length", window.length},
                         {"in_flight", activations_json(window.held)}});
    }
  }
  return json;
}

void add_details(const ScheduleOutcome& outcome, Json& json) {
  json["times"] = times_json(outcome.run);
  json["bubbles"] = bubbles_json(*outcome.figures);
  json["critical_path"] = Json::array();
  const ActionTable table(outcome.lists);
  for (const std::uint32_t action : outcome.run.critical_path)
    json["critical_path"].push_back(name_of(table[action]));
}

std::string peaks_text(const std::vector<RankMemory>& ranks, std::int64_t RankMemory::*peak,
                       std::int64_t unit) {
  std::string text;
  for (const RankMemory& rank : ranks)
    text += (text.empty() ? "" : " ") + activations_text(rank.*peak * unit);
  return text;
}

std::string deadlock_text(const std::vector<Blocked>& deadlock) {
  std::string text = "it never finishes:\n";
  for (const Blocked& blocked : deadlock) {
    text +=
        fmt::format("  rank {}: {} waits for {}", blocked.rank, blocked.action, blocked.waits_for);
    if (blocked.waits_for_rank.value_or(blocked.rank) != blocked.rank)
      text += fmt::format(" of rank {}", *blocked.waits_for_rank);
    if (!blocked.behind.empty()) text += ", which stands behind " + blocked.behind;
    text += "\n";
  }
  return text;
}

std::string figures_text(const ScheduleOutcome& outcome) {
  const PipelineFigures& figures = *outcome.figures;
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", name, value);
  };
  row("makespan", std::to_string(figures.makespan));
  row("bubble", fmt::format("{}, {:.1f} % of all ranks' time", figures.bubble,
                            100 * figures.bubble_fraction));
  row("bubble without ends", std::to_string(figures.span_bubble));
  row("peak in flight", peaks_text(outcome.run.memory, &RankMemory::peak, 1));
  const bool has_checkpoints =
      std::any_of(outcome.run.memory.begin(), outcome.run.memory.end(),
                  [](const RankMemory& rank) { return rank.peak_checkpoints > 0; });
  if (has_checkpoints) {
    row("peak checkpoints",
        peaks_text(outcome.run.memory, &RankMemory::peak_checkpoints, whole_activation));
  }
  return text + schedule_picture(outcome.lists, outcome.run, figures.makespan, picture_columns);
}

std::string lists_text(const PipelineLists& lists) {
  std::string text;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    text += fmt::format("rank {}:", rank);
    const RankList& list = lists.ranks[rank];
    for (std::size_t first = 0; first < list.size(); first = group_end(list, first))
      text += " " + group_name(list, first);
    text += "\n";
  }
  return text;
}

}  // namespace

bool ScheduleOutcome::is_valid() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.holds; });
}

std::string schedule_json(const ScheduleOutcome& outcome, bool all) {
  Json json = {{"version", 1}, {"name", outcome.name}};
  json["replay"] = outcome.replay;
  json["channel"] = outcome.channel;
  json["lowering"] = outcome.lowering;
  json["ranks"] = lists_json(outcome.lists);
  const std::optional<PipelineFigures>& figures = outcome.figures;
  json["makespan"] = figures ? Json(figures->makespan) : Json(nullptr);
  json["bubble"] = figures ? Json(figures->bubble) : Json(nullptr);
  json["bubble_fraction"] = figures ? Json(figures->bubble_fraction) : Json(nullptr);
  json["span_bubble"] = figures ? Json(figures->span_bubble) : Json(nullptr);
  json["busy"] = Json::array();
  for (std::size_t rank = 0; figures && rank < figures->ranks.size(); ++rank)
    json["busy"].push_back(figures->ranks[rank].busy);
  json["peak_in_flight"] = Json::array();
  json["peak_checkpoints"] = Json::array();
  for (const RankMemory& rank : outcome.run.memory) {
    json["peak_in_flight"].push_back(activations_json(rank.peak));
    json["peak_checkpoints"].push_back(rank.peak_checkpoints);
  }
  json["valid"] = outcome.is_valid();
  json["checks"] = Json::object();
  for (const ScheduleOutcome::Check& check : outcome.checks)
    json["checks"][check.name] = check.holds;
  json["complaints"] = outcome.complaints;
  json["deadlock"] = deadlock_json(outcome.run.deadlock);
  if (all && figures) add_details(outcome, json);
  return json.dump() + "\n";
}

std::string schedule_text(const ScheduleOutcome& outcome, bool lists) {
  std::string text = fmt::format("{}: {} ranks, {} actions, channel {}, lowering {}, replay {}\n",
                                 outcome.name, outcome.lists.ranks.size(), n_actions(outcome.lists),
                                 outcome.channel, outcome.lowering, outcome.replay);
  text += outcome.figures ? figures_text(outcome) : deadlock_text(outcome.run.deadlock);
  if (lists) text += lists_text(outcome.lists);
  for (const std::string& complaint : outcome.complaints)
    text += "wrong: " + complaint + "\n";
  return text;
}

}  // namespace remat
