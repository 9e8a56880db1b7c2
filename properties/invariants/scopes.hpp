#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/flat_map.hpp"
#include "properties/invariants/session_key.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Frames by number: the recorded one, or, for a region without a frame, a negative stand-in for
/// (rank, region, invocation, micro-batch).
inline constexpr std::int64_t no_frame = INT64_MIN;

/// A region that runs: its forward, or one replay of it.
struct Scope {
  std::int64_t id = 0;  // counts the scopes of a trace; never used twice
  bool replay = false;
  bool framed = false;  // the trace gives the frame's number
  NameId unit{0};
  std::int64_t frame = no_frame;
  std::optional<SessionKey> session;
  std::int64_t begin_seq = 0;
  bool stopped = false;  // early stop was seen
};

/// One call of a checkpointed region, as far as the trace tells.
struct Frame {
  std::optional<NameId> unit;
  std::optional<std::int64_t> invocation;
  std::optional<std::int64_t> microbatch;
  bool forward_open = false;  // its forward runs
  bool forward_known =
      false;  // its forward was recorded: by a scope, or by ops that carry the region's name
  bool scoped = false;           // … by a scope
  std::int64_t forward_seq = 0;  // first event of its forward
  std::vector<NameId> saves;     // its slots in the order packed
  std::int64_t replays = 0;
};

/// A body that an event belongs to: innermost first, up to the first replay. An event of a region
/// that runs inside a replay counts for the region's forward and for the outer replay (R3).
struct Body {
  std::int64_t frame = no_frame;
  bool replay = false;
  bool scoped = false;
  std::int64_t scope = 0;  // of a scoped body
  std::int64_t begin_seq = 0;
};

/// Which regions run where, and what calls there are.
class ScopeBook {
 public:
  /// The frame that the event names: its number, or the stand-in for its region; none for an event
  /// of neither.
  std::optional<std::int64_t> frame_of(const EventView& event);
  const Frame* frame(std::int64_t key) const { return frames_.find(key); }
  Frame* frame(std::int64_t key) { return frames_.find(key); }

  /// Bodies of an event that is not the model's own business of a hook; empty outside every region.
  void bodies(const EventView& event, std::vector<Body>& into);
  /// The innermost replay that the event lies in.
  const Scope* replay(const EventView& event) const;
  const std::vector<Scope>& stack(const EventView& event) const;
  /// The innermost scope of that frame around the event.
  const Scope* of_frame(const EventView& event, std::int64_t frame) const;

  /// Calls without a frame number whose replay has not begun, in the order in which they were first
  /// seen.
  std::vector<std::int64_t> stand_ins_not_replayed() const;

  void begin(const EventView& event, std::optional<SessionKey> session);
  /// Ends the scope that the event closes; which it was.
  std::optional<Scope> end(const EventView& event);
  void early_stop(const EventView& event);
  Frame& create_frame(std::int64_t key, const EventView& event);
  void free_frame(std::int64_t key) { frames_.erase(key); }
  /// Calls without a frame number do not outlive their rank's step (none: every rank's); the keys
  /// that are gone.
  std::vector<std::int64_t> end_step(std::optional<std::int64_t> rank);

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // rank, thread
  /// The stack that the event belongs to: of those that agree with what it records, the one used
  /// last.
  Place place_of(const EventView& event) const;
  static bool lies_in(const Scope& scope, const EventView& event);

  std::map<Place, std::vector<Scope>> stacks_;
  std::optional<Place> last_place_;  // where a region began last
  FlatMap<Frame> frames_;
  using Call = std::tuple<std::int64_t, std::uint32_t, std::int64_t,
                          std::int64_t>;  // rank, unit, inv, micro-batch
  std::map<Call, std::int64_t> stand_ins_;
  std::int64_t next_stand_in_ = -1;
  std::int64_t next_scope_ = 1;
};

}  // namespace remat
