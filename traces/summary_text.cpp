#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/summary.hpp"

namespace remat {
namespace {

constexpr std::size_t rows_max = 8;  // of units and of listed names: the table stays one screen
constexpr std::size_t names_max = 8;

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 3> units = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  std::int64_t unit = 1024;
  std::size_t at = 0;
  for (; at + 1 < units.size() && bytes / unit >= 1024; ++at)
    unit *= 1024;
  const std::int64_t whole = bytes / unit;
  return fmt::format("{}.{} {}", whole, bytes % unit * 10 / unit, units[at]);
}

std::string label(std::string_view what) {
  return fmt::format("{:<14}", what);
}

std::int64_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, n] : counts)
    sum += n;
  return sum;
}

template <typename Value>
Value value_at(const std::map<Phase, Value>& values, Phase phase) {
  const auto found = values.find(phase);
  return found == values.end() ? Value{} : found->second;
}

std::string phase_rows(const TraceSummary& summary) {
  std::set<Phase> phases;
  for (const auto& [phase, counts] : summary.ops)
    phases.insert(phase);
  for (const auto& [phase, counts] : summary.hook_ops)
    phases.insert(phase);
  for (const auto& [phase, n] : summary.detaches)
    phases.insert(phase);
  for (const auto& [phase, bytes] : summary.peak_by_phase)
    if (phase != Phase::none) phases.insert(phase);
  std::string text = fmt::format("{:<16}{:>8}{:>10}{:>9}{:>13}{:>15}\n", "phase", "ops", "hook ops",
                                 "detach", "peak", "less gradients");
  for (const Phase phase : phases) {
    const ByteCount peak = value_at(summary.peak_by_phase, phase);
    const auto shown = [&](std::int64_t bytes) {
      return summary.bytes_recorded ? bytes_text(bytes) : std::string("-");
    };
    text += fmt::format("{:<16}{:>8}{:>10}{:>9}{:>13}{:>15}\n",
                        phase == Phase::none ? "(not recorded)" : name_of(phase),
                        total(value_at(summary.ops, phase)),
                        total(value_at(summary.hook_ops, phase)), value_at(summary.detaches, phase),
                        shown(peak.all), shown(peak.without_gradients));
  }
  return text;
}

/// `60: 48 recomputed, 12 saved`, the most first.
std::string counts_text(const Counts& counts) {
  std::vector<std::pair<std::int64_t, std::string>> ranked;
  for (const auto& [name, n] : counts)
    ranked.emplace_back(-n, name);
  std::sort(ranked.begin(), ranked.end());
  std::string text = fmt::format("{}", total(counts));
  for (std::size_t i = 0; i < std::min(ranked.size(), names_max); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", -ranked[i].first,
                        ranked[i].second == "None" ? "not recorded" : ranked[i].second);
  }
  return text + (ranked.size() > names_max ? ", …" : "");
}

std::string bytes_rows(const TraceSummary& summary) {
  if (!summary.bytes_recorded)
    return label("bytes") + "not recorded (the trace has no storage_alloc)\n";
  std::string text = label("peak") + bytes_text(summary.peak.all);
  text += fmt::format(", without gradients {}\n", bytes_text(summary.peak.without_gradients));
  if (summary.resident.empty()) return text;
  text += label("after forward");
  for (std::size_t i = 0; i < std::min(summary.resident.size(), names_max); ++i) {
    const ResidentBytes& resident = summary.resident[i];
    if (i != 0) text += ", ";
    if (resident.microbatch)
      text += fmt::format("{}{}: ", i == 0 ? "micro-batch " : "", *resident.microbatch);
    text += bytes_text(resident.bytes);
  }
  return text + (summary.resident.size() > names_max ? ", …\n" : "\n");
}

std::string replay_rows(const TraceSummary& summary) {
  std::string text = label("replays") + fmt::format("{}", summary.replay_order.size());
  for (std::size_t i = 0; i < std::min(summary.replay_order.size(), names_max); ++i) {
    const ReplayBegin& replay = summary.replay_order[i];
    text += fmt::format("{} {}", i == 0 ? ":" : ",", replay.unit);
    if (replay.inv) text += fmt::format("#{}", *replay.inv);
  }
  text += summary.replay_order.size() > names_max ? ", …\n" : "\n";
  if (!summary.early_stops.empty())
    text += label("early stops") + fmt::format("{}\n", summary.early_stops.size());
  if (summary.sac_saved != 0 || summary.sac_hits != 0) {
    text += label("selective") + fmt::format("{} outputs kept, {} ops of replays served\n",
                                             summary.sac_saved, summary.sac_hits);
  }
  return text;
}

std::string error_rows(const TraceSummary& summary) {
  std::string text;
  std::size_t raised = 0;
  for (const WatchedError& error : summary.errors) {
    if (!error.type) continue;  // watched, and it ran silently
    if (raised == 0) text = label("raised") + fmt::format("{} at seq {}", *error.type, error.seq);
    ++raised;
  }
  if (raised > 1) text += fmt::format(", and {} more", raised - 1);
  return raised == 0 ? text : text + "\n";
}

std::string unit_rows(const TraceSummary& summary) {
  if (summary.units.empty()) return "";
  std::size_t width = 16;
  const std::size_t shown = std::min(summary.units.size(), rows_max);
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, summary.units[i].unit.size() + 2);
  std::string text = fmt::format("{:<{}}{:>11}{:>9}{:>9}{:>8}{:>9}{:>9}\n", "unit", width,
                                 "micro-batch", "forward", "replay", "packs", "unpacks", "replays");
  for (std::size_t i = 0; i < shown; ++i) {
    const UnitSummary& unit = summary.units[i];
    const std::string microbatch = unit.microbatch ? std::to_string(*unit.microbatch) : "-";
    text += fmt::format("{:<{}}{:>11}{:>9}{:>9}{:>8}{:>9}{:>9}\n", unit.unit, width, microbatch,
                        unit.ops_forward, unit.ops_replay, unit.packs, unit.unpacks, unit.replays);
  }
  if (shown < summary.units.size())
    text += fmt::format("… and {} more rows\n", summary.units.size() - shown);
  return text;
}

}  // namespace

std::string summary_text(const TraceSummary& summary) {
  std::string text = label("events") + fmt::format("{}, steps {}\n", summary.events, summary.steps);
  text += phase_rows(summary);
  text += bytes_rows(summary);
  text += label("packs") + counts_text(summary.packs_by_held) + "\n";
  text += label("unpacks") + counts_text(summary.unpacks) + "\n";
  text += replay_rows(summary);
  text += error_rows(summary);
  return text + unit_rows(summary);
}

}  // namespace remat
