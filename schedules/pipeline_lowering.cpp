#include "schedules/pipeline_lowering.hpp"

#include <map>
#include <vector>

#include "schedules/action_table.hpp"

namespace remat {
namespace {

/// The message that brings the outcome of `made`, as the one who receives it has it.
PipelineAction receive_of(const PipelineAction& made) {
  return made.work == Work::forward ? moved(made, Work::recv_forward, 1)
                                    : moved(made, Work::recv_backward, -1);
}

/// What makes the message.
PipelineAction maker_of(const PipelineAction& receive) {
  return receive.work == Work::recv_forward ? moved(receive, Work::forward, -1)
                                            : moved(receive, Work::backward, 1);
}

/// Who sends what to whom.
class Messages {
 public:
  Messages(const PipelineLists& lists, bool on_demand) : table(lists), on_demand_(on_demand) {}

  /// The entry of another rank that uses what `action` makes first; none where there is no message.
  std::optional<std::uint32_t> user_of(const PipelineAction& action, std::size_t rank) const {
    const bool is_gradient = makes_gradient(action.work);
    if (action.work != Work::forward && !is_gradient) return std::nullopt;
    const auto user = table.find(is_gradient ? moved(action, Work::backward, -1)
                                             : moved(action, Work::forward, 1));
    return user && table.rank_of(*user) != rank ? user : std::nullopt;
  }
  /// Calls `use` with the number of each entry of another rank that this one needs.
  template <typename Use>
  void each_remote_need(const PipelineAction& action, std::size_t rank, Use use) const {
    for (const PipelineAction& need : needs_of(action, table.extent(), on_demand_)) {
      const auto made = table.find(need);
      if (made && table.rank_of(*made) != rank) use(*made);
    }
  }

  const ActionTable table;

 private:
  bool on_demand_;
};

PipelineAction sent(const PipelineAction& made) {
  return with_work(made, made.work == Work::forward ? Work::send_forward : Work::send_backward);
}

PipelineLists naively_lowered(const Messages& messages) {
  PipelineLists lowered;
  std::vector<bool> is_received(messages.table.size());
  for (std::size_t rank = 0; rank < messages.table.lists().ranks.size(); ++rank) {
    const RankList& list = messages.table.lists().ranks[rank];
    RankList& out = lowered.ranks.emplace_back();
    for (std::size_t first = 0; first < list.size();) {
      const std::size_t end = group_end(list, first);
      for (std::size_t i = first; i < end; ++i) {
        messages.each_remote_need(list[i], rank, [&](std::uint32_t made) {
          if (!is_received[made]) out.push_back(receive_of(messages.table[made]));
          is_received[made] = true;
        });
      }
      out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(first),
                 list.begin() + static_cast<std::ptrdiff_t>(end));
      for (; first < end; ++first) {
        if (messages.user_of(list[first], rank)) out.push_back(sent(list[first]));
      }
    }
  }
  return lowered;
}

/// Rank after rank takes its next group where all that it needs has been made or received.
class TorchLowering {
 public:
  explicit TorchLowering(const Messages& messages)
      : messages_(messages),
        is_there_(messages.table.size()),
        next_(messages.table.lists().ranks.size()) {
    lowered_.ranks.resize(next_.size());
  }

  std::optional<PipelineLists> lower() {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank)
        has_moved = take_group(rank) || has_moved;
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] < list_of(rank).size()) return std::nullopt;
    }
    return lowered_;
  }

 private:
  const RankList& list_of(std::size_t rank) const { return messages_.table.lists().ranks[rank]; }

  /// A message is there for its receiver once it has been sent: its receive stands in the list.
  bool is_ready(const PipelineAction& action, std::size_t rank) const {
    bool is_ready = true;
    messages_.each_remote_need(action, rank,
                               [&](std::uint32_t made) { is_ready = is_ready && is_there_[made]; });
    return is_ready;
  }

  bool take_group(std::size_t rank) {
    const RankList& list = list_of(rank);
    const std::size_t first = next_[rank];
    const std::size_t end = group_end(list, first);
    for (std::size_t i = first; i < end; ++i) {
      if (!is_ready(list[i], rank)) return false;
    }
    for (std::size_t i = first; i < end; ++i) {
      lowered_.ranks[rank].push_back(list[i]);
      is_there_[messages_.table.first_of(rank) + i] = true;
    }
    for (std::size_t i = first; i < end; ++i) {
      if (const auto user = messages_.user_of(list[i], rank)) {
        lowered_.ranks[rank].push_back(sent(list[i]));
        lowered_.ranks[messages_.table.rank_of(*user)].push_back(receive_of(list[i]));
      }
    }
    next_[rank] = end;
    return first < end;
  }

  const Messages& messages_;
  std::vector<bool> is_there_;  // for each entry: has run
  std::vector<std::size_t> next_;
  PipelineLists lowered_;
};

/// Holds each receive back until its use; but where a rank sends to a higher one, what it still has
/// to receive from there goes first, so that the two do not both begin with a send.
class Deferral {
 public:
  explicit Deferral(const Messages& messages)
      : messages_(messages), is_held_(messages.table.size()) {}

  RankList deferred(const RankList& list, std::size_t rank) {
    RankList out;
    held_from_.clear();
    for (std::size_t first = 0; first < list.size();) {
      const std::size_t end = group_end(list, first);
      if (is_recv(list[first].work)) {
        hold(messages_.table.find(maker_of(list[first])).value());
      } else {
        for (std::size_t i = first; i < end; ++i)
          release_before(list[i], rank, out);
        out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(first),
                   list.begin() + static_cast<std::ptrdiff_t>(end));
      }
      first = end;
    }
    return out;
  }

 private:
  void hold(std::uint32_t made) {
    is_held_[made] = true;
    held_from_[messages_.table.rank_of(made)].push_back(made);
  }
  void release(std::uint32_t made, RankList& out) {
    if (is_held_[made]) out.push_back(receive_of(messages_.table[made]));
    is_held_[made] = false;
  }
  void release_before(const PipelineAction& action, std::size_t rank, RankList& out) {
    if (is_send(action.work) && rank < receiver_of(action, rank)) {
      std::vector<std::uint32_t>& held = held_from_[receiver_of(action, rank)];
      for (const std::uint32_t made : held)
        release(made, out);
      held.clear();
    }
    messages_.each_remote_need(action, rank, [&](std::uint32_t made) { release(made, out); });
  }
  std::uint32_t receiver_of(const PipelineAction& send, std::size_t rank) const {
    const bool is_forward = send.work == Work::send_forward;
    const PipelineAction made = with_work(send, is_forward ? Work::forward : Work::backward);
    return messages_.table.rank_of(messages_.user_of(made, rank).value());
  }

  const Messages& messages_;
  std::vector<bool> is_held_;                                      // for each entry, what it made
  std::map<std::uint32_t, std::vector<std::uint32_t>> held_from_;  // the same by rank, in order
};

RankList with_waits(const RankList& list, std::size_t rank, const Messages& messages) {
  RankList out;
  RankList at_end;
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t end = group_end(list, first);
    out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(first),
               list.begin() + static_cast<std::ptrdiff_t>(end));
    for (; first < end; ++first) {
      const PipelineAction& action = list[first];
      if (makes_gradient(action.work) &&
          messages.user_of(with_work(action, Work::forward), rank).has_value())
        out.push_back(with_work(action, Work::wait_send_forward));
      if (action.work == Work::send_backward)
        at_end.push_back(with_work(action, Work::wait_send_backward));
    }
  }
  out.insert(out.end(), at_end.begin(), at_end.end());
  return out;
}

}  // namespace

std::optional<PipelineLists> lowered(const PipelineLists& lists, Lowering lowering,
                                     bool on_demand) {
  const Messages messages(lists, on_demand);
  if (lowering == Lowering::naive) return naively_lowered(messages);
  auto lowered = TorchLowering(messages).lower();
  if (!lowered) return std::nullopt;
  Deferral deferral(messages);
  for (std::size_t rank = 0; rank < lowered->ranks.size(); ++rank) {
    RankList& list = lowered->ranks[rank];
    if (lowering == Lowering::torch_deferred) list = deferral.deferred(list, rank);
    list = with_waits(list, rank, messages);
  }
  return lowered;
}

}  // namespace remat
