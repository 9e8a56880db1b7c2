#include "sim/pipeline_waits.hpp"

#include <map>
#include <utility>

namespace remat {
namespace {

bool is_message(Work work) {
  return is_send(work) || is_recv(work);
}

/// The receive that brings `user` what it needs from another stage.
PipelineAction receive_for(const PipelineAction& user, const PipelineAction& need) {
  return with_work(user, need.work == Work::forward ? Work::recv_forward : Work::recv_backward);
}

}  // namespace

PipelineWaits::PipelineWaits(const ActionTable& table, const PipelineSettings& settings)
    : table_(table),
      settings_(settings),
      has_messages_(has_work(table.lists(), is_message)),
      never_(2 * table.size()),
      graph_(std::size_t{2} * table.size() + 1) {
  graph_.reserve(std::size_t{6} * table.size());
  for (std::size_t rank = 0; rank < table.lists().ranks.size(); ++rank)
    add_list(rank);
  if (has_messages_) add_messages();
}

void PipelineWaits::add_list(std::size_t rank) {
  free_.clear();
  const RankList& list = table_.lists().ranks[rank];
  const std::uint32_t base = table_.first_of(rank);
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t end = group_end(list, first);
    add_group(base + static_cast<std::uint32_t>(first), base + static_cast<std::uint32_t>(end));
    first = end;
  }
}

void PipelineWaits::add_group(std::uint32_t first, std::uint32_t end) {
  const bool is_pair = table_[first].joined == Joined::overlapped;
  std::vector<Node> free;
  for (std::uint32_t action = first; action < end; ++action) {
    // Said first, so that what its rank has not come to yet is told as standing behind the rest.
    graph_.add(
        {end_of(action), start_of(action), settings_.costs.of(table_[action]), WaitKind::order});
    add_needs(action, is_pair ? first : action);
    if (is_pair && action > first) {
      graph_.add({start_of(action), end_of(action - 1), 0, WaitKind::order});
    } else {
      for (const Node node : free_)
        graph_.add({start_of(action), node, 0, WaitKind::order});
    }
    if (is_pair) free.clear();
    free.push_back(waits_in_place(action) ? end_of(action) : start_of(action));
  }
  free_ = std::move(free);
}

bool PipelineWaits::waits_in_place(std::uint32_t action) const {
  return !(is_message(table_[action].work) && is_fifo(settings_.channel.kind));
}

void PipelineWaits::add_needs(std::uint32_t action, std::uint32_t waiting) {
  for (const PipelineAction& need : needs_of(table_[action], table_.extent(), settings_.on_demand))
    add_need(need, action, waiting);
  if (!is_wait_send(table_[action].work)) return;
  const bool is_forward = table_[action].work == Work::wait_send_forward;
  const auto send =
      table_.find(with_work(table_[action], is_forward ? Work::send_forward : Work::send_backward));
  if (send) graph_.add({end_of(action), end_of(*send), 0, WaitKind::needs});
}

void PipelineWaits::add_need(const PipelineAction& need, std::uint32_t action,
                             std::uint32_t waiting) {
  const auto wait_for = [&](std::uint32_t made, std::int64_t time) {
    graph_.add({start_of(waiting), end_of(made), time, WaitKind::needs});
  };
  const bool is_from_other_stage = need.stage != table_[action].stage;
  if (is_from_other_stage && has_messages_) {
    const auto receive = table_.find(receive_for(table_[action], need));
    if (receive && table_.rank_of(*receive) == table_.rank_of(action)) return wait_for(*receive, 0);
  }
  if (const auto made = table_.find(need)) {
    const bool is_remote = table_.rank_of(*made) != table_.rank_of(action);
    return wait_for(*made, is_remote ? settings_.costs.latency : 0);
  }
  // Without an R nothing is replayed. A part of lists, with messages, may leave compute out.
  if (need.work != Work::replay && !has_messages_ && !settings_.ignores_missing)
    never_comes(waiting, name_of(need) + ", which no list has");
}

void PipelineWaits::never_comes(std::uint32_t action, const std::string& what) {
  if (hopeless_.empty()) graph_.add({never_, never_, 0, WaitKind::needs});
  graph_.add({start_of(action), never_, 0, WaitKind::needs});
  hopeless_.push_back({action, what});
}

void PipelineWaits::add_memory(std::size_t rank, const OverLimit& over) {
  const std::uint32_t action = table_.first_of(rank) + static_cast<std::uint32_t>(over.place);
  if (!over.freed_at) return never_comes(action, "memory that nothing frees");
  const auto freed_at = static_cast<std::uint32_t>(*over.freed_at);
  graph_.add({start_of(action), end_of(table_.first_of(rank) + freed_at), 0, WaitKind::memory});
}

PipelineWaits::QueueKey PipelineWaits::queue_of(std::uint32_t message, std::uint32_t peer) const {
  const Work work = table_[message].work;
  const bool is_backward = work == Work::send_backward || work == Work::recv_backward;
  const ChannelKind kind = settings_.channel.kind;
  return {table_.rank_of(message), kind == ChannelKind::one_fifo ? 0 : peer,
          kind == ChannelKind::dir_fifo && is_backward};
}

std::optional<std::uint32_t> PipelineWaits::other_end_of(std::uint32_t message) const {
  // A message that is sent or received a second time has no other end.
  if (table_.find(table_[message]) != message) return std::nullopt;
  return table_.find(other_end(table_[message]));
}

void PipelineWaits::note_unmatched(std::uint32_t message) {
  const ChannelKind kind = settings_.channel.kind;
  const bool may_go_unread = kind == ChannelKind::async || kind == ChannelKind::eager;
  if (is_send(table_[message].work) && may_go_unread) return;
  never_comes(message, name_of(other_end(table_[message])) + ", which no list has");
}

void PipelineWaits::add_messages() {
  before_.resize(table_.size());
  std::map<QueueKey, std::uint32_t> last_in_queue;
  for (std::uint32_t action = 0; action < table_.size(); ++action) {
    if (!is_message(table_[action].work)) continue;
    const auto other = other_end_of(action);
    if (!other) {
      note_unmatched(action);
      continue;
    }
    const auto [last, is_first] =
        last_in_queue.try_emplace(queue_of(action, table_.rank_of(*other)), action);
    if (!is_first) before_[action] = std::exchange(last->second, action);
  }
  for (std::uint32_t action = 0; action < table_.size(); ++action) {
    if (!is_recv(table_[action].work)) continue;
    if (const auto send = other_end_of(action)) add_message(action, *send);
  }
  if (settings_.channel.kind == ChannelKind::eager) add_buffers();
}

void PipelineWaits::add_message(std::uint32_t receive, std::uint32_t send) {
  const std::int64_t latency = settings_.costs.latency;
  const Node end = end_of(receive);
  switch (settings_.channel.kind) {
    case ChannelKind::async:
    case ChannelKind::eager:
      graph_.add({end, end_of(send), latency, WaitKind::needs});
      return;
    case ChannelKind::rendezvous:
      break;
    case ChannelKind::pair_fifo:
    case ChannelKind::dir_fifo:
    case ChannelKind::one_fifo:
      if (before_[receive]) graph_.add({end, end_of(*before_[receive]), latency, WaitKind::order});
      if (before_[send]) graph_.add({end, end_of(*before_[send]), latency, WaitKind::needs});
      break;
  }
  graph_.add({end, start_of(receive), latency, WaitKind::order});
  graph_.add({end, start_of(send), latency, WaitKind::needs});
  graph_.add({end_of(send), end, 0, WaitKind::needs});
}

/// The n-th message from one rank to another leaves once the receiver has taken n - depth of them.
void PipelineWaits::add_buffers() {
  using RankPair = std::pair<std::uint32_t, std::uint32_t>;
  std::map<RankPair, std::vector<std::uint32_t>> received;
  for (std::uint32_t action = 0; action < table_.size(); ++action) {
    if (!is_recv(table_[action].work)) continue;
    if (const auto send = other_end_of(action))
      received[{table_.rank_of(*send), table_.rank_of(action)}].push_back(action);
  }
  std::map<RankPair, std::int64_t> n_sent;
  for (std::uint32_t action = 0; action < table_.size(); ++action) {
    if (!is_send(table_[action].work)) continue;
    const auto receive = other_end_of(action);
    if (!receive) continue;
    const RankPair pair = {table_.rank_of(action), table_.rank_of(*receive)};
    const std::int64_t n_to_take = n_sent[pair]++ - settings_.channel.depth;
    if (n_to_take < 0) continue;
    const std::uint32_t taken = received[pair][static_cast<std::size_t>(n_to_take)];
    graph_.add({end_of(action), end_of(taken), 0, WaitKind::needs});
  }
}

}  // namespace remat
