#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/invariants/copies.hpp"
#include "properties/invariants/excluded_calls.hpp"
#include "properties/invariants/scopes.hpp"
#include "properties/invariants/slots.hpp"
#include "properties/invariants/storages.hpp"
#include "traces/trace.hpp"

namespace remat {

struct ParsedExpectation;

/// What the header says about the trace.
struct TraceHeader {
  std::string producer;
  std::string expect = "{}";  // JSON text
  std::size_t n_ranks = 0;    // that take part; 0: not told, those that are seen
  // The same, parsed by whoever asks first (expectations.hpp).
  mutable std::shared_ptr<const ParsedExpectation> parsed_expect;
  bool storages_have_lifetimes = true;  // false: `not_recorded` names their allocation or release
  /// Written by a recorder on a real system, where a caller may hold things past the step (L2, L3).
  bool has_a_caller = true;
  /// Observed, not written by hand: what an op of a backward leaves behind may be a gradient (L3).
  bool is_a_recording = false;
};

/// Why an op or a hook reads a tensor.
enum class ReadKind : std::uint8_t {
  op_input,
  slot,
  fill,
  cache_hit,
  served,
  region_input,
  kept_output
};

struct Read {
  StorageId storage{0};
  std::optional<std::int64_t> tensor;
  ReadKind kind = ReadKind::op_input;
};

/// What is true of the run just before an event, and what the event itself amounts to: kept once,
/// read by every invariant. It judges nothing. Rules named in comments (R2, S1, …) are those of
/// docs/trace-format.md.
class Facts {
 public:
  /// Looks at the event: from here on the accessors speak of it and of the state before it.
  void begin(const EventView& event);
  /// Takes the event's effects over into the state.
  void end(const EventView& event);

  const TraceHeader& header() const { return header_; }
  const StorageBook& storages() const { return storages_; }
  const SlotBook& slots() const { return slots_; }
  const ScopeBook& scopes() const { return scopes_; }
  const CopyBook& copies() const { return copies_; }
  const ExcludedCalls& excluded_calls() const { return excluded_calls_; }

  // Of the event.
  /// S1: `gid`, else the graph task, else the session of the replay that the event lies in.
  std::optional<SessionKey> session() const { return session_; }
  /// The innermost replay that the event lies in (R2).
  const Scope* replay() const { return replay_ ? &*replay_ : nullptr; }
  bool in_replay() const { return replay_.has_value(); }
  /// R3: innermost first. Empty for what a hook did (R4).
  const std::vector<Body>& bodies() const { return bodies_; }
  /// U1: storages that the event reads.
  const std::vector<Read>& reads() const { return reads_; }
  std::optional<std::int64_t> frame() const { return frame_; }
  /// The call of an excluded region that the event speaks of, or else lies in.
  const OpenCall* excluded_call() const { return excluded_call_; }
  /// What a cache_pop asks for.
  const std::optional<AskedEntry>& asked_entry() const { return asked_entry_; }
  /// The replay of the event's frame that the event lies in: its scope, or 0.
  std::int64_t own_replay() const { return own_replay_; }
  /// The scope that a unit_end closes.
  const std::optional<Scope>& ended_scope() const { return ended_scope_; }
  /// The slot that the event names, if it is alive or its frame is.
  const Slot* slot() const { return slots_.of(*event_); }
  /// Where the slot of an unpack was asked for: its unpack_begin, or the event itself (S3).
  std::int64_t asked_seq() const;
  /// The phase, `replay` where the event lies in one.
  Phase phase() const { return in_replay() ? Phase::replay : event_->phase(); }
  /// Storages that the event brings to life, with their bytes.
  struct Birth {
    StorageId storage{0};
    std::int64_t bytes = 0;
  };
  const std::vector<Birth>& births() const { return births_; }
  /// The tensor as it can be kept past the event.
  KeptTensor kept(const TensorView& tensor) const;
  std::optional<StorageId> storage_of(const TensorView& tensor) const;
  /// The storage of a tensor in a list that shows tensors or only their ids.
  std::optional<StorageId> listed_storage(const EventView& event, Field list,
                                          std::size_t index) const;
  /// Was the storage made by the body (its forward or replay) itself?
  bool made_by(const Body& body, StorageId storage) const;
  /// U2: at an inputs_save, the storage was just packed as a slot of the region around: that slot's
  /// business.
  bool is_a_slot_of_the_caller(StorageId storage) const;
  /// The frame of the innermost scope around the event, whatever its kind.
  std::optional<std::int64_t> enclosing_frame() const;
  /// Frame keys that the event ends: a frame_free, or calls without a number at a step's end.
  const std::vector<std::int64_t>& frames_gone() const { return frames_gone_; }

  // Of the run.
  /// The event is a step_end, and with it every rank seen so far has ended that step of its own; an
  /// end without a rank speaks for all of them (D3).
  bool ends_the_step() const { return ends_the_step_; }
  /// Event at which the rank's step began: its step_begin, or the end of the step before where none
  /// is recorded. What was born before it does not belong to the step.
  std::int64_t step_begin_seq(std::optional<std::int64_t> rank) const;
  /// Event of the first error since the step began that nobody caught; nothing is due at the end of
  /// such a step (L4).
  std::optional<std::int64_t> stopped_at() const { return stopped_at_; }
  /// Has a replay raised since that event?
  bool replay_raised_since(std::int64_t seq) const { return last_raised_ && *last_raised_ > seq; }
  /// The session keeps what it handed out for further requests (S3, S6).
  bool retains(SessionKey session) const;

 private:
  void read_header(const EventView& event);
  void count_steps(const EventView& event);
  void find_reads(const EventView& event);
  void find_slot_read(const EventView& event);
  void add_read(std::optional<StorageId> storage, std::optional<std::int64_t> tensor,
                ReadKind kind);
  void add_read(const TensorView& tensor, ReadKind kind);
  void add_listed(const EventView& event, Field list, ReadKind kind);
  void find_kept_output_reads(const EventView& event);
  void find_births(const EventView& event);
  void find_excluded_call(const EventView& event);
  void describe_tensors(const EventView& event);
  void describe(const TensorView& tensor);
  bool is_read(StorageId storage) const;
  std::optional<SessionKey> session_of(const EventView& event) const;
  std::optional<std::int64_t> excluded_frame(const EventView& event);

  void end_storage_event(const EventView& event);
  void end_slot_event(const EventView& event);
  void end_scope_event(const EventView& event);
  void end_excluded_event(const EventView& event);
  void put_entry(const EventView& event);
  void end_op(const EventView& event);
  void end_pack(const EventView& event);
  std::optional<ExcludedPlace> excluded_place(const EventView& event) const;
  void end_fill(const EventView& event);
  void end_request(const EventView& event);
  void give_birth(const EventView& event);
  void mark_held(std::optional<StorageId> storage);

  TraceHeader header_;
  StorageBook storages_;
  SlotBook slots_;
  ScopeBook scopes_;
  CopyBook copies_;
  ExcludedCalls excluded_calls_;

  const EventView* event_ = nullptr;
  std::optional<SessionKey> session_;
  std::optional<Scope> replay_;  // a copy: a unit_end takes the scope itself away
  std::vector<Body> bodies_;
  std::vector<Read> reads_;
  std::vector<Birth> births_;
  std::optional<std::int64_t> frame_;
  std::vector<StorageId> packed_inputs_;  // packed since a frame_create and before its inputs_save
  const OpenCall* excluded_call_ = nullptr;
  std::optional<AskedEntry> asked_entry_;
  std::int64_t own_replay_ = 0;
  std::optional<Scope> ended_scope_;
  std::vector<std::int64_t> frames_gone_;

  std::int64_t all_ranks_began_seq_ = 0;
  std::map<std::int64_t, std::int64_t> steps_ended_;  // by rank, of every rank seen
  bool ends_the_step_ = false;
  std::map<std::int64_t, std::int64_t> rank_began_seq_;
  std::optional<std::int64_t> stopped_at_;
  std::optional<std::int64_t> stopped_before_phase_;  // the same, as the phase found it
  std::optional<std::int64_t> last_raised_;
  std::set<std::int64_t> retains_;  // sessions, by their bits
};

}  // namespace remat
