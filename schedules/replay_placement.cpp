#include "schedules/replay_placement.hpp"

#include <algorithm>
#include <vector>

#include "schedules/action_table.hpp"

namespace remat {
namespace {

/// An R, and the place that it stands before.
struct Replay {
  std::int64_t place = 0;
  PipelineAction action;
};

/// For each entry of a list the place, in groups, at which it stands.
std::vector<std::int64_t> places_of(const RankList& list) {
  std::vector<std::int64_t> places;
  std::int64_t place = 0;
  for (const PipelineAction& action : list) {
    places.push_back(place);
    if (action.joined == Joined::no) ++place;
  }
  return places;
}

std::vector<Replay> replays_of(const ActionTable& table, std::size_t rank, std::int64_t distance) {
  const RankList& list = table.lists().ranks[rank];
  const std::vector<std::int64_t> places = places_of(list);
  std::vector<Replay> replays;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!makes_gradient(list[i].work)) continue;
    std::int64_t place = std::max<std::int64_t>(places[i] - distance, 0);
    const auto forward = table.find(with_work(list[i], Work::forward));
    if (forward && table.rank_of(*forward) == rank)
      place = std::max(place, std::min(places[table.place_of(*forward)] + 1, places[i]));
    replays.push_back({place, with_work(list[i], Work::replay)});
  }
  std::stable_sort(replays.begin(), replays.end(),
                   [](const Replay& a, const Replay& b) { return a.place < b.place; });
  return replays;
}

RankList merged(const RankList& list, const std::vector<Replay>& replays) {
  RankList merged;
  merged.reserve(list.size() + replays.size());
  std::int64_t place = 0;
  auto next = replays.begin();
  for (std::size_t first = 0; first < list.size(); ++place) {
    for (; next != replays.end() && next->place == place; ++next)
      merged.push_back(next->action);
    for (const std::size_t end = group_end(list, first); first < end; ++first)
      merged.push_back(list[first]);
  }
  return merged;
}

}  // namespace

PipelineLists with_replays(const PipelineLists& lists, std::int64_t distance) {
  const ActionTable table(lists);
  PipelineLists placed;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank)
    placed.ranks.push_back(merged(lists.ranks[rank], replays_of(table, rank, distance)));
  return placed;
}

}  // namespace remat
