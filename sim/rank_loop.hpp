#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "schedules/offload_policy.hpp"
#include "schedules/protocol.hpp"
#include "sim/event_log.hpp"
#include "sim/rank.hpp"

namespace remat {

/// What one rank does: its program, and the phases of it in their order.
struct RankPlan {
  const Program* program = nullptr;
  const PhaseOrder* order = nullptr;
};

/// What a phase raised and the training loop caught.
struct CaughtError {
  std::size_t rank = 0;
  std::size_t phase = 0;  // its place in the rank's order
  SimulatedError error;
};

/// What a run took of a rank. Of several together: the most of any.
struct RankUse {
  Instant end;
  BytesByClass at_peak;
  /// Alive at the end of the last forward phase that was not caught raising.
  std::int64_t resident_bytes = 0;
  BytesByClass resident;                          // the same, by owner class
  std::vector<std::int64_t> resident_by_forward;  // at the end of each forward phase
  std::int64_t replay_peak_bytes = 0;
  /// The most that replays brought to excluded regions' slots and that lay there at one time.
  std::int64_t rederived_bytes = 0;
  std::int64_t hook_calls = 0;
  BytesByLevel offloaded{};  // what waited elsewhere than on the device
  Duration copies_waited;    // by the compute stream
  Duration ranks_waited;     // for other ranks
};

/// Looks at the rank, once a phase is over.
using AfterPhase = std::function<void(const Rank& rank, const PhaseStep& phase)>;

/// The training loop of one rank, phase by phase.
class RankLoop {
 public:
  RankLoop(std::size_t number, const RankPlan& plan, const Protocol& protocol,
           const RankOptions& options, const std::optional<OffloadPolicy>& offload, EventLog& log);

  void set_up() { rank_.set_up(); }
  /// Looks at the rank after each phase; must outlive the loop.
  void watch(const AfterPhase& after_phase) { after_phase_ = &after_phase; }
  bool has_more() const { return at_ < plan_.order->size(); }
  /// The phase that ran last ended a step.
  bool is_at_step_end() const {
    return at_ > 0 && (*plan_.order)[at_ - 1].kind == PhaseStep::Kind::step_end;
  }
  /// Runs the next phase; false: it raised what nobody caught.
  bool run_next();
  /// The order once more, with nothing kept of what is over.
  void start_again();

  Rank& rank() { return rank_; }
  const Rank& rank() const { return rank_; }
  RankUse use() const;
  std::vector<CaughtError>& caught() { return caught_; }
  /// How many contributions there were at the end of each step.
  const std::vector<std::size_t>& contributions_by_step() const { return contributions_by_step_; }

 private:
  Flow run(const PhaseStep& step);
  void catch_error(std::size_t at);
  void note_residents();

  std::size_t number_;
  RankPlan plan_;
  std::vector<bool> is_last_use_;
  EventLog* log_;
  Rank rank_;
  RankUse use_;
  std::vector<CaughtError> caught_;
  std::vector<std::size_t> contributions_by_step_;
  std::size_t at_ = 0;
  std::int64_t step_ = 0;
  const AfterPhase* after_phase_ = nullptr;
};

}  // namespace remat
