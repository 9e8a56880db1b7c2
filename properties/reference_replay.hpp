#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "properties/reference_graph.hpp"

namespace remat {

/// What one walk over a stretch of statements runs, and the bytes that it needs, under the formulas
/// of protocols.md §2. Bytes are those of distinct buffers that the program makes itself.
struct ReferenceWalk {
  /// Statements that ran: ops and effects.
  std::vector<std::size_t> ran;
  /// Of the buffers that the walk made: the most that lived at a time, and what is kept at its end.
  std::int64_t peak_bytes = 0;
  std::int64_t kept_bytes = 0;
  /// What each pack of the region's own frame saved, in order; the buffers of those that it made.
  std::vector<ValueId> packed;
  std::vector<bool> is_made;  // by buffer: the walk made it
  /// What a selective policy or an excluded region's entry keeps, with the frame that keeps it.
  std::vector<std::pair<std::size_t, ValueId>> kept_by_frame;
};

/// How saves are kept while the statements run.
enum class ReferenceSaves : std::uint8_t {
  by_regions,  // a forward: as the protocol has it, region by region
  kept         // a replay: its own graph keeps what its ops save
};

/// Walks statements `begin` to `end`. A replay runs the branches of replays, ends at the pack that
/// forward made last (`stop_after` packs; 0: runs whole), and is served what the policy keeps of
/// its own region.
struct ReferenceStretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_replay = false;
  ReferenceSaves saves = ReferenceSaves::by_regions;
  std::size_t stop_after = 0;
  std::size_t frame = ReferenceGraph::no_frame;  // whose packs are listed
};
ReferenceWalk reference_walk(const Program& program, const ReferenceRules& rules,
                             const ReferenceWrappers& wrappers, const ReferenceStretch& stretch);

}  // namespace remat
