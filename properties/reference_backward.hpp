#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "properties/reference_graph.hpp"
#include "properties/reference_replay.hpp"

namespace remat {

/// What one backward of a micro-batch runs in its replays, and the most bytes that it needs beside
/// what forward kept.
struct ReferenceBackward {
  std::vector<std::size_t> ran;  // statements, once for each time
  std::int64_t peak_bytes = 0;
  std::int64_t left_bytes = 0;  // what replays brought to excluded regions, and the graph keeps
};

/// The forward of a legal program under a protocol, and its backwards, as protocols.md §2 has them.
class ReferenceForward {
 public:
  ReferenceForward(const Program& program, const ReferenceRules& rules);

  const std::vector<std::size_t>& ran() const { return walk_.ran; }
  std::int64_t peak_bytes() const { return walk_.peak_bytes; }
  /// R: what is alive once the forward is over.
  std::int64_t resident_bytes() const { return resident_; }
  /// The backward that asks for these leaves; all where none is named. One that retains the graph
  /// lets excluded regions keep what a replay brought them.
  const ReferenceBackward& backward(const std::vector<ValueId>& leaves, bool retain) const;
  /// More than all gradients, replays and what they refill can need together.
  std::int64_t bytes_of_all_gradients() const;

 private:
  friend class BackwardWalk;
  /// A region's replay, and what it refills.
  struct Replay {
    std::vector<std::size_t> ran;
    std::int64_t peak_bytes = 0;
    std::vector<ValueId> packed;   // by slot
    std::vector<bool> is_made;     // by buffer: the replay makes it anew
    std::vector<ValueId> fetched;  // the region's arguments, where they are slots of another frame
    std::size_t outer = ReferenceGraph::no_frame;
  };

  void find_replays(std::size_t begin, std::size_t end, std::size_t outer);
  void find_resident();
  const RegionBegin& region(std::size_t begin) const {
    return std::get<RegionBegin>(statements_of(*program_)[begin]);
  }

  const Program* program_;
  ReferenceRules rules_;
  ReferenceWrappers wrappers_;
  ReferenceGraph graph_;
  ReferenceWalk walk_;
  std::map<std::size_t, Replay> replays_;  // by the region's begin
  std::int64_t resident_ = 0;
  // By retain and leaves.
  mutable std::map<std::pair<bool, std::vector<std::uint32_t>>, ReferenceBackward> backwards_;
};

}  // namespace remat
