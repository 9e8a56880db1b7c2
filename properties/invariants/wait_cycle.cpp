#include "properties/invariants/wait_cycle.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace remat {

/// How far every rank gets when each waits as its calls demand.
struct WaitCycle::Progress {
  explicit Progress(const WaitCycle& all) : of(all) {
    for (const auto& [channel, row] : of.channel_rows_) {
      if (const auto left = of.under_way_.find(channel); left != of.under_way_.end())
        n_sent[row] = left->second;
    }
    for (const auto& [rank, calls] : of.calls_) {
      at[rank] = 0;
      for (const Call& call : calls)
        if (call.is_collective) members[{call.place, call.number}].push_back(rank);
    }
  }

  const Call* head(std::int64_t rank) const {
    const std::vector<Call>& calls = of.calls_.at(rank);
    const std::size_t index = at.at(rank);
    return index < calls.size() ? &calls[index] : nullptr;
  }

  /// The first rank that has not come to what this rank's head needs; none where nothing is
  /// missing.
  std::optional<std::int64_t> waits_for(const Call& call) const {
    if (call.is_send) return std::nullopt;
    if (!call.is_collective) {
      const auto sent = n_sent.find(call.place);
      if (sent != n_sent.end() && sent->second > call.number) return std::nullopt;
      return std::get<0>(of.channels_[call.place]);
    }
    for (const std::int64_t member : members.at({call.place, call.number})) {
      const Call* other = head(member);
      const bool is_there = other != nullptr && other->is_collective &&
                            other->place == call.place && other->number == call.number;
      if (!is_there) return member;
    }
    return std::nullopt;
  }

  /// Lets the rank's head be answered, with all who take part.
  void answer(std::int64_t rank, const Call& call) {
    if (call.is_send) ++n_sent[call.place];
    if (!call.is_collective) {
      ++at[rank];
      return;
    }
    for (const std::int64_t member : members.at({call.place, call.number}))
      ++at[member];
  }

  void run() {
    bool any = true;
    while (any) {
      any = false;
      for (auto& [rank, index] : at) {
        for (const Call* call = head(rank); call != nullptr && !waits_for(*call);
             call = head(rank)) {
          answer(rank, *call);
          any = true;
        }
      }
    }
  }

  const WaitCycle& of;
  std::map<std::int64_t, std::size_t> at;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<std::int64_t>> members;
  std::map<std::uint32_t, std::int64_t> n_sent;
};

void WaitCycle::collective(std::uint32_t group, const CollectiveCall& call) {
  if (is_too_long()) return;
  ++n_calls_;
  const std::int64_t number = issued_[{call.rank, group}]++;
  calls_[call.rank].push_back({true, group, number, call.seq, call.name, false});
}

void WaitCycle::message(const Channel& channel, bool is_send, std::int64_t seq) {
  if (is_too_long()) return;
  ++n_calls_;
  const auto [entry, is_new] =
      channel_rows_.try_emplace(channel, static_cast<std::uint32_t>(channels_.size()));
  if (is_new) channels_.push_back(channel);
  const std::int64_t number = messages_[{entry->second, is_send}]++;
  const std::int64_t rank = is_send ? std::get<0>(channel) : std::get<1>(channel);
  calls_[rank].push_back({false, entry->second, number, seq, std::nullopt, is_send});
}

std::vector<WaitCycle::Wait> WaitCycle::find() const {
  if (is_too_long()) return {};
  Progress progress(*this);
  progress.run();
  std::vector<Wait> waits;
  std::set<std::int64_t> met;
  for (const auto& [first, index] : progress.at) {
    if (progress.head(first) == nullptr) continue;
    // Whoever is stuck waits for somebody who is stuck, so following them ends in a circle.
    std::int64_t rank = first;
    while (met.insert(rank).second) {
      const Call* call = progress.head(rank);
      if (call == nullptr) return {};  // waits for one who is not in the trace, or has finished
      const std::int64_t next = *progress.waits_for(*call);
      waits.push_back({rank, call->seq, call->name, next});
      if (!progress.at.contains(next)) return {};
      rank = next;
    }
    const auto begin = std::find_if(waits.begin(), waits.end(),
                                    [&](const Wait& wait) { return wait.rank == rank; });
    std::vector<Wait> circle(begin, waits.end());
    std::rotate(circle.begin(),
                std::min_element(circle.begin(), circle.end(),
                                 [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
                circle.end());
    return circle;
  }
  return {};
}

void WaitCycle::begin_step() {
  std::map<Channel, std::int64_t> under_way = std::move(under_way_);
  for (const auto& [message, n] : messages_)
    under_way[channels_[message.first]] += message.second ? n : -n;
  std::erase_if(under_way, [](const auto& entry) { return entry.second <= 0; });
  *this = WaitCycle();
  under_way_ = std::move(under_way);
}

}  // namespace remat
