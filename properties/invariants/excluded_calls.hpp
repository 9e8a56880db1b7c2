#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/flat_map.hpp"
#include "properties/invariants/scopes.hpp"
#include "properties/invariants/storages.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Two sides of one thing are the same as far as both are recorded.
inline bool agrees(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return !a || !b || a == b;
}

/// A storage of an output that an entry keeps, as it was then.
struct KeptOutput {
  StorageId storage{0};
  std::uint32_t version = 0;
};

/// What one call of an excluded region in forward leaves for the replay, and when that left.
struct ForwardEntry {
  std::int64_t put_seq = 0;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> leaves;
  std::optional<bool> keeps_output;
  std::vector<KeptOutput> outputs;
  std::optional<std::int64_t> left_seq;
  std::int64_t left_in_scope = 0;  // of the replay; 0 outside one

  bool is_there() const { return !left_seq; }
};

/// One call of an excluded region in forward.
struct ForwardCall {
  std::optional<std::int64_t> number;
  std::int64_t enter_seq = 0;
  std::optional<std::int64_t> n_inputs;  // tensor leaves
  std::vector<std::int64_t> boundaries;  // leaves that passed a boundary, ascending
  std::optional<std::int64_t> rng_crc;   // at its exit
  bool raised = false;
  std::optional<ForwardEntry> entry;
};

/// A call of an excluded region that runs, in forward or in a replay.
struct OpenCall {
  std::optional<std::int64_t> frame;  // frame key; none outside every checkpointed region
  NameId wrapper{0};
  std::optional<std::int64_t> number;
  bool is_replayed = false;  // a replay of its own frame goes over it
  bool is_skipped = false;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> thread;
  std::int64_t enter_seq = 0;
  std::int64_t scope = 0;  // of that replay
  std::optional<std::int64_t> n_inputs;
  std::vector<std::int64_t> boundaries;
  std::optional<std::size_t> forward;  // place of the forward call: its own, or the replayed one
};

/// The entry that a cache_pop asks for (X9).
struct AskedEntry {
  std::int64_t nth = 0;                   // of the wrapper's pops in this replay, from 0
  std::int64_t n_entries = 0;             // that forward has put there
  std::optional<std::size_t> nth_call;    // place of the call whose entry is due; none: never put
  std::optional<std::size_t> named_call;  // place of the one that the event says it gets
};

/// Calls of excluded regions: which run, and what those of forward left for their frame's replays.
class ExcludedCalls {
 public:
  /// The call that a wrapper's own event speaks of.
  const OpenCall* of(const EventView& event, std::optional<std::int64_t> frame) const;
  /// The innermost call that the event lies in.
  const OpenCall* around(const EventView& event) const;
  bool any_open() const { return !open_.empty(); }

  /// The forward call that an open one is, or goes over.
  const ForwardCall* forward(const OpenCall& call) const;
  const ForwardCall* forward(std::int64_t frame, NameId name, std::size_t place) const;
  AskedEntry asked(const EventView& event, std::int64_t frame, std::int64_t scope) const;
  /// Some cache_put was seen.
  bool entries_are_recorded() const { return entries_are_recorded_; }
  /// Visits the entries that are there, by frame; `visit(frame, wrapper, call)`.
  template <typename Visit>
  void each_entry(Visit visit) const {
    for (const auto& [frame, wrappers] : frames_) {
      for (const Wrapper& of_wrapper : wrappers) {
        for (const ForwardCall& call : of_wrapper.forward)
          if (call.entry && call.entry->is_there()) visit(frame, of_wrapper.name, call);
      }
    }
  }
  /// Likewise, of one frame.
  template <typename Visit>
  void each_entry(std::int64_t frame, Visit visit) const {
    const auto found = frames_.find(frame);
    if (found == frames_.end()) return;
    for (const Wrapper& of_wrapper : found->second) {
      for (const ForwardCall& call : of_wrapper.forward)
        if (call.entry && call.entry->is_there()) visit(of_wrapper.name, call);
    }
  }

  void enter(const EventView& event, std::optional<std::int64_t> frame, bool is_replayed,
             std::int64_t scope);
  void pass_boundary(const EventView& event, std::optional<std::int64_t> frame);
  void exit(const EventView& event, std::optional<std::int64_t> frame);
  void put(const EventView& event, std::int64_t frame, std::vector<KeptOutput> outputs);
  void pop(const EventView& event, std::int64_t frame, std::int64_t scope, const AskedEntry& asked);
  void clear(const EventView& event, std::int64_t frame, std::int64_t scope);
  /// What was entered at the event's place since then does not run any more.
  void end_calls_since(const EventView& event, std::int64_t seq);
  void end_all_calls() { open_.clear(); }
  void free_frame(std::int64_t frame) { frames_.erase(frame); }

 private:
  /// How far one replay has come in the calls of a wrapper.
  struct Progress {
    std::int64_t scope = 0;
    std::size_t n_calls = 0;
    std::int64_t n_pops = 0;
  };
  struct Wrapper {
    NameId name{0};
    std::vector<ForwardCall> forward;
    std::vector<Progress> replays;

    bool has_entries() const;
    Progress& in(std::int64_t scope);
  };

  OpenCall* find_open(const EventView& event, std::optional<std::int64_t> frame);
  Wrapper& wrapper(std::int64_t frame, NameId name);
  const Wrapper* find(std::int64_t frame, NameId name) const;
  ForwardCall* forward_of(const OpenCall& call);

  std::vector<OpenCall> open_;  // the innermost last
  std::map<std::int64_t, std::vector<Wrapper>> frames_;
  bool entries_are_recorded_ = false;
};

}  // namespace remat
