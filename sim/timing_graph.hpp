#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace remat {

/// Why one instant cannot come before another.
enum class WaitKind : std::uint8_t {
  order,   // it is further back in a list or a queue
  needs,   // it uses what the other makes, or is the other end of its message
  memory,  // it needs memory that the other frees
};

/// Instants, each at or after others by a given time: the longest paths through them, in one pass.
/// Nodes are numbered from 0; an instant without waits is at 0.
class TimingGraph {
 public:
  using Node = std::uint32_t;

  struct Wait {
    Node waiter = 0;
    Node awaited = 0;
    std::int64_t time = 0;  // how much later it comes at the earliest
    WaitKind kind = WaitKind::order;
  };

  explicit TimingGraph(std::size_t n_nodes) : n_nodes_(n_nodes) {}

  void reserve(std::size_t n_waits) { waits_.reserve(n_waits); }
  void add(const Wait& wait) { waits_.push_back(wait); }

  /// Gives each node its instant. Those that wait in a cycle, or for one that does, get none.
  void solve();

  /// All nodes have an instant.
  bool is_solved() const { return n_solved_ == n_nodes_; }
  bool has_instant(Node node) const { return n_open_[node] == 0; }
  /// Of a node that has one.
  std::int64_t instant(Node node) const { return instants_[node]; }
  /// The wait that an instant is due to; none where it is due to none.
  std::optional<Wait> decisive(Node node) const;

  /// Waits in a cycle, each for the one behind it: the first cycle that one comes to from the first
  /// node without instant. A node's place in a list is named before what it needs.
  std::vector<Wait> cycle() const;

 private:
  static constexpr std::uint32_t nothing = UINT32_MAX;

  std::size_t n_nodes_;
  std::size_t n_solved_ = 0;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> n_open_;  // waits that a node still has
  std::vector<std::int64_t> instants_;
  std::vector<std::uint32_t> decisive_;  // numbers of waits
};

}  // namespace remat
