#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/live_bytes.hpp"
#include "traces/trace.hpp"

namespace remat {

/// How often each name occurred. A name that was not recorded, or null, counts as `None`.
using Counts = std::map<std::string, std::int64_t>;

/// A replay begins: whose, and what asked for it. Fields are absent where they were not recorded.
struct ReplayBegin {
  std::int64_t seq = 0;
  std::string unit;
  std::optional<std::int64_t> inv;
  std::optional<std::int64_t> microbatch;
  std::optional<std::int64_t> frame;
  std::optional<std::string> session_kind;
  std::optional<std::int64_t> graph_task;
  std::optional<std::string> node;
  std::string nested_in;  // the region or frame of the replay around this one, as JSON text
};

/// A replay is cut short, after so many packs out of those of forward.
struct EarlyStop {
  std::int64_t seq = 0;
  std::string unit;
  std::optional<std::int64_t> inv;
  std::optional<std::int64_t> after_packs;
  std::optional<std::int64_t> of;
  std::optional<std::int64_t> after_ops;
};

/// Something was raised; without a type, it was watched and ran silently (`no_error`).
struct WatchedError {
  std::int64_t seq = 0;
  std::optional<std::string> type;
  std::string label;
};

/// Bytes alive where a forward phase ends, by the roles known then.
struct ResidentBytes {
  std::optional<std::int64_t> microbatch;
  std::int64_t bytes = 0;
};

/// What one unit did for one micro-batch. Ops are those whose innermost unit it is, hook-made ones
/// and detach left out; an unpack belongs to the row that packed its slot.
struct UnitSummary {
  std::string unit;
  std::optional<std::int64_t> microbatch;
  std::int64_t ops_forward = 0;
  std::int64_t ops_replay = 0;
  std::int64_t packs = 0;
  std::int64_t unpacks = 0;
  std::int64_t replays = 0;
};

/// What a trace holds, in numbers. Phases are the recorded ones; an op of a replay has phase
/// `replay`, and `setup` is the harness at work.
struct TraceSummary {
  std::int64_t events = 0;  // with the header
  std::int64_t steps = 0;
  std::map<Phase, Counts> ops;             // hook-made ones and detach left out
  std::map<Phase, Counts> hook_ops;        // made by a hook (`internal`), detach too
  std::map<Phase, std::int64_t> detaches;  // `aten.detach.default` that no hook made
  Counts packs_by_unit;                    // `UNIT`, or `UNIT:REGION` for torch_remat's packs
  Counts packs_by_held;                    // `HELD:ROLE`
  Counts unpacks;                          // by `from`
  Counts replays;                          // `UNIT#INV`, or `UNIT` where calls are not numbered
  std::vector<ReplayBegin> replay_order;
  std::vector<EarlyStop> early_stops;
  std::vector<WatchedError> errors;
  std::int64_t sac_saved = 0;   // selective checkpointing: outputs kept in forward
  std::int64_t sac_hits = 0;    // and ops of a replay that were served one
  bool bytes_recorded = false;  // the trace tells of storages; otherwise all bytes below are empty
  std::vector<ResidentBytes> resident;
  ByteCount peak;  // outside `setup`
  std::map<Phase, ByteCount> peak_by_phase;
  std::int64_t live_at_end = 0;
  std::vector<UnitSummary> units;  // in the order of their first event
};

/// Summarises a trace event by event. Keeps what is alive, counts by name and micro-batch, and one
/// entry for each replay, early stop, watched error and forward phase: never the events.
class SummaryBuilder {
 public:
  SummaryBuilder();
  SummaryBuilder(SummaryBuilder&&) noexcept;
  SummaryBuilder& operator=(SummaryBuilder&&) noexcept;
  ~SummaryBuilder();

  /// Events of one trace, in order; the trace may drop them in between.
  void observe(const EventView& event);
  TraceSummary finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// An aligned table for people, each line ended.
std::string summary_text(const TraceSummary& summary);
/// One JSON object, its keys in a fixed order, without a line end.
std::string summary_json(const TraceSummary& summary);

}  // namespace remat
