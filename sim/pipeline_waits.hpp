#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "schedules/action_table.hpp"
#include "sim/pipeline_memory.hpp"
#include "sim/pipeline_run.hpp"
#include "sim/timing_graph.hpp"

namespace remat {

/// What starts and ends of the entries of lists wait for, as a graph of instants. Keeps references
/// to both arguments, which must outlive it.
class PipelineWaits {
 public:
  using Node = TimingGraph::Node;

  PipelineWaits(const ActionTable& table, const PipelineSettings& settings);

  TimingGraph& graph() { return graph_; }

  /// The entry that is over its rank's limit waits for memory that one behind it frees.
  void add_memory(std::size_t rank, const OverLimit& over);

  static constexpr Node start_of(std::uint32_t action) { return 2 * action; }
  static constexpr Node end_of(std::uint32_t action) { return 2 * action + 1; }
  static constexpr std::uint32_t action_of(Node node) { return node / 2; }
  /// No instant at all: what waits for it waits for ever.
  bool is_never(Node node) const { return node == never_; }

  /// An entry that waits for what never comes, and what that is.
  struct Hopeless {
    std::uint32_t action = 0;
    std::string waits_for;
  };
  const std::vector<Hopeless>& hopeless() const { return hopeless_; }

 private:
  /// A rank's queue: whose, towards whom, and for which direction.
  using QueueKey = std::tuple<std::uint32_t, std::uint32_t, bool>;

  void add_list(std::size_t rank);
  void add_group(std::uint32_t first, std::uint32_t end);
  void add_needs(std::uint32_t action, std::uint32_t waiting);
  void add_need(const PipelineAction& need, std::uint32_t action, std::uint32_t waiting);
  void add_messages();
  void add_message(std::uint32_t receive, std::uint32_t send);
  /// The other end of a send or a receive; none where no list has it.
  std::optional<std::uint32_t> other_end_of(std::uint32_t message) const;
  void note_unmatched(std::uint32_t message);
  void add_buffers();
  QueueKey queue_of(std::uint32_t message, std::uint32_t peer) const;
  bool waits_in_place(std::uint32_t action) const;
  void never_comes(std::uint32_t action, const std::string& what);

  const ActionTable& table_;
  const PipelineSettings& settings_;
  bool has_messages_;
  Node never_;
  TimingGraph graph_;
  std::vector<Node> free_;  // instants after which the rank goes on to its next entry
  std::vector<Hopeless> hopeless_;
  std::vector<std::optional<std::uint32_t>> before_;  // the message ahead in its queue
};

}  // namespace remat
