#include "sim/timing_graph.hpp"

#include <algorithm>

#include "model/errors.hpp"

namespace remat {
namespace {

/// Numbers of waits, sorted by the node that is waited for: those of node n begin at first[n].
struct Waiters {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> waits;
};

Waiters waiters_of(const std::vector<TimingGraph::Wait>& waits, std::size_t n_nodes) {
  Waiters waiters;
  waiters.first.resize(n_nodes + 1);
  for (const TimingGraph::Wait& wait : waits)
    ++waiters.first[wait.awaited + 1];
  for (std::size_t node = 0; node < n_nodes; ++node)
    waiters.first[node + 1] += waiters.first[node];
  std::vector<std::uint32_t> next(waiters.first.begin(), waiters.first.end() - 1);
  waiters.waits.resize(waits.size());
  for (std::uint32_t i = 0; i < waits.size(); ++i)
    waiters.waits[next[waits[i].awaited]++] = i;
  return waiters;
}

}  // namespace

void TimingGraph::solve() {
  n_open_.assign(n_nodes_, 0);
  instants_.assign(n_nodes_, 0);
  decisive_.assign(n_nodes_, nothing);
  for (const Wait& wait : waits_)
    ++n_open_[wait.waiter];
  const Waiters waiters = waiters_of(waits_, n_nodes_);
  std::vector<Node> ready;
  ready.reserve(n_nodes_);
  for (Node node = 0; node < n_nodes_; ++node) {
    if (n_open_[node] == 0) ready.push_back(node);
  }
  for (n_solved_ = 0; n_solved_ < ready.size(); ++n_solved_) {
    const Node node = ready[n_solved_];
    for (std::uint32_t i = waiters.first[node]; i < waiters.first[node + 1]; ++i) {
      const Wait& wait = waits_[waiters.waits[i]];
      const std::int64_t earliest = instants_[node] + wait.time;
      if (earliest > instants_[wait.waiter] || decisive_[wait.waiter] == nothing) {
        instants_[wait.waiter] = earliest;
        decisive_[wait.waiter] = waiters.waits[i];
      }
      if (--n_open_[wait.waiter] == 0) ready.push_back(wait.waiter);
    }
  }
}

std::optional<TimingGraph::Wait> TimingGraph::decisive(Node node) const {
  const std::uint32_t wait = decisive_[node];
  return wait == nothing ? std::nullopt : std::optional(waits_[wait]);
}

std::vector<TimingGraph::Wait> TimingGraph::cycle() const {
  // For each node without instant a wait that keeps it from one, the first in its list if it can
  // be.
  std::vector<std::uint32_t> held_by(n_nodes_, nothing);
  for (std::uint32_t i = 0; i < waits_.size(); ++i) {
    const Wait& wait = waits_[i];
    if (has_instant(wait.awaited)) continue;
    std::uint32_t& held = held_by[wait.waiter];
    const bool is_better =
        held != nothing && wait.kind == WaitKind::order && waits_[held].kind != WaitKind::order;
    if (held == nothing || is_better) held = i;
  }
  Node node = 0;
  while (node < n_nodes_ && has_instant(node))
    ++node;
  REMAT_INVARIANT(node < n_nodes_);
  // Whoever has no instant waits for another that has none, so this many steps end in a cycle.
  for (std::size_t step = 0; step < n_nodes_; ++step)
    node = waits_[held_by[node]].awaited;
  std::vector<Wait> cycle;
  for (Node at = node; cycle.empty() || at != node; at = cycle.back().awaited)
    cycle.push_back(waits_[held_by[at]]);
  return cycle;
}

}  // namespace remat
