#include "sim/collective_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/errors.hpp"

namespace remat {
namespace {

std::size_t place_of(const RankGroup& group, std::uint32_t rank) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  REMAT_INVARIANT(found != group.ranks.end());
  return static_cast<std::size_t>(found - group.ranks.begin());
}

}  // namespace

CollectiveBoard::CollectiveBoard(const std::vector<RankGroup>& groups) {
  for (const RankGroup& ranks : groups)
    groups_.push_back({ranks, std::vector<std::int64_t>(ranks.ranks.size(), 0), 0, {}});
}

CollectiveBoard::Arrival CollectiveBoard::arrive(std::uint32_t rank, const CollectiveRequest& call,
                                                 Instant now) {
  Group& group = groups_[call.group];
  const std::size_t n_ranks = group.ranks.ranks.size();
  const std::size_t place = place_of(group.ranks, rank);
  const std::int64_t number = group.n_issued[place]++;
  const auto index = static_cast<std::size_t>(number - group.n_over);
  if (index == group.open.size()) {
    group.open.push_back({.name = std::string(call.name),
                          .tag = std::string(call.tag),
                          .n = call.n,
                          .what = call.what,
                          .first_rank = rank,
                          .elements = std::vector<Ring>(n_ranks),
                          .has_come = std::vector<bool>(n_ranks, false),
                          .n_come = 0,
                          .n_waiting = 0,
                          .dead = {},
                          .latest = now,
                          .cost = call.cost});
  }
  OpenCall& open = group.open[index];
  Arrival arrival;
  open.has_come[place] = true;
  ++open.n_come;
  if (!open.dead.empty()) {
    arrival.meeting = refused("E-DEADLOCK", fmt::format("rank {} comes to {}", rank, open.dead));
    drop_over(group);
    return arrival;
  }
  const bool is_same = open.name == call.name && open.tag == call.tag && open.n == call.n;
  if (!is_same || open.what != call.what) {
    arrival.meeting = refused(
        "E-COLL-ORDER",
        fmt::format("rank {} issues {} of {} elements ({}) as call {} of group {}, where rank {} "
                    "issued {} of {} elements ({}){}",
                    rank, call.name, call.n, call.tag, number, group.ranks.name, open.first_rank,
                    open.name, open.n, open.tag,
                    is_same ? " of another type, or with other attributes" : ""));
    open.dead =
        fmt::format("call {} of group {}, which ranks disagreed about", number, group.ranks.name);
    return arrival;
  }
  open.elements[place] = call.element;
  open.latest = std::max(open.latest, now);
  open.cost = std::max(open.cost, call.cost);
  if (open.n_come < n_ranks) {
    ++open.n_waiting;
    return arrival;
  }
  open.n_waiting = 0;
  arrival.is_last = true;
  arrival.meeting.elements = std::move(open.elements);
  arrival.meeting.end = {saturated_sum(open.latest.ns, open.cost.ns)};
  for (const std::uint32_t other : group.ranks.ranks)
    if (other != rank) arrival.waiting.push_back(other);
  drop_over(group);
  return arrival;
}

Meeting CollectiveBoard::refused(std::string_view code, std::string why) {
  return {.elements = {}, .end = {}, .code = std::string(code), .why = std::move(why)};
}

/// Calls that all ranks have issued, and that none waits in, are over, in their order.
void CollectiveBoard::drop_over(Group& group) {
  const std::size_t n_ranks = group.ranks.ranks.size();
  while (!group.open.empty() && group.open.front().n_come == n_ranks &&
         group.open.front().n_waiting == 0) {
    group.open.pop_front();
    ++group.n_over;
  }
}

void CollectiveBoard::give_up(std::uint32_t group_index, std::uint32_t rank) {
  Group& group = groups_[group_index];
  const std::int64_t number = group.n_issued[place_of(group.ranks, rank)] - 1;
  OpenCall& open = group.open[static_cast<std::size_t>(number - group.n_over)];
  open.dead = fmt::format("call {} of group {}, which rank {} has given up", number,
                          group.ranks.name, rank);
  --open.n_waiting;
  drop_over(group);
}

std::string CollectiveBoard::awaited(std::uint32_t group_index, std::uint32_t rank) const {
  const Group& group = groups_[group_index];
  const std::int64_t number = group.n_issued[place_of(group.ranks, rank)] - 1;
  const OpenCall& open = group.open[static_cast<std::size_t>(number - group.n_over)];
  std::string missing;
  for (std::size_t place = 0; place < open.has_come.size(); ++place) {
    if (open.has_come[place]) continue;
    missing.append(missing.empty() ? "" : ", ").append(std::to_string(group.ranks.ranks[place]));
  }
  return fmt::format("rank {} waits in {} ({}), call {} of group {}, for rank {}", rank, open.name,
                     open.tag, number, group.ranks.name, missing);
}

}  // namespace remat
