#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/phase_order.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Makes steps of what a recording shows of recompute sessions (observed-hyperparallel.md §6 R15,
/// R21, R22). A session that opens in a phase is in scope for the whole of it.
class SessionSteps {
 public:
  SessionSteps(const Trace& trace, PhaseOrder& order) : trace_(&trace), order_(&order) {}

  /// A phase begins, whose step is the order's last.
  void begin_phase();
  /// A phase begins that has these frames replayed.
  void begin_prefire(std::optional<std::int64_t> microbatch, std::vector<std::int64_t> frames);
  void end_phase();
  /// `runs_already`: the phase has done something that a session in scope would change.
  void open(const EventView& event, bool runs_already);
  void close(const EventView& event);
  void clear(const EventView& event);
  bool has_session_in_scope() const { return in_scope_.has_value(); }
  /// Why the steps would be a guess; none where they are not.
  const std::optional<std::string>& unsupported() const { return unsupported_; }

 private:
  void refuse(const char* why) {
    if (!unsupported_) unsupported_ = why;
  }
  std::string name_of(const EventView& event);
  void open_for_prefire(const EventView& event, const PhaseStep& step);
  void prefire(std::vector<std::int64_t> frames);

  enum class Within : std::uint8_t { no_phase, phase, prefire };
  const Trace* trace_;
  PhaseOrder* order_;
  Within within_ = Within::no_phase;
  std::size_t phase_at_ = 0;  // of the phase's step
  std::size_t n_opened_ = 0;  // in this phase
  std::optional<std::string> in_scope_;
  std::optional<std::int64_t> microbatch_;
  std::vector<std::int64_t> frames_;  // to be replayed in this phase
  std::optional<std::string> unsupported_;
};

}  // namespace remat
