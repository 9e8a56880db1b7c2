#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/errors.hpp"
#include "model/units.hpp"
#include "sim/chooser.hpp"
#include "sim/event_queue.hpp"

namespace remat {

class Engine;

/// What events do: the one who gave them their payloads.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// Changes the state, and schedules what follows.
  virtual void handle(Engine& engine, const Event& event) = 0;
  /// Adds to the empty footprint what `handle` would touch if the event came next. Changes nothing.
  /// Asked only of events among which there is a choice, and only for choosers that need it.
  virtual void footprint(const Event& event, Footprint& footprint) const = 0;
};

enum class RunOutcome : std::uint8_t { done, events_max_reached };

/// Simulated time: hands each event over at its instant, in the order of time, and where that
/// leaves a choice, in the chooser's. Keeps references to both, which must outlive it.
class Engine {
 public:
  Engine(EventHandler& handler, Chooser& chooser) : handler_(handler), chooser_(chooser) {}

  /// Not before `now`. Events of one stream and instant come in the order of these calls.
  void schedule(Instant when, std::uint32_t rank, std::uint32_t stream, std::uint64_t payload) {
    REMAT_INVARIANT(when >= now_);
    queue_.push({when, rank, stream, n_scheduled_++, payload});
  }
  /// Room for so many pending events, so that a run need not allocate.
  void reserve(std::size_t n_pending) { queue_.reserve(n_pending); }

  /// Hands events over until none is pending, or `events_max` have been in this call. Another call
  /// goes on from there.
  RunOutcome run(std::uint64_t events_max);

  /// The instant of the event that was handed over last; 0 before the first.
  Instant now() const { return now_; }
  /// Events handed over so far, by all runs.
  std::uint64_t n_handled() const { return n_handled_; }
  /// Something is pending that comes before an event of that rank at that time, or at least may.
  bool has_before(Instant when, std::uint32_t rank) const {
    if (!ready_.empty()) return true;
    if (queue_.empty()) return false;
    const Event& next = queue_.top();
    return next.when < when || (next.when == when && next.rank < rank);
  }
  std::size_t n_pending() const { return queue_.size() + ready_.size(); }

 private:
  RunOutcome run_in_order(std::uint64_t events_max);
  RunOutcome run_by_choice(std::uint64_t events_max);
  void hand_over(const Event& event);
  void gather_ready();
  Event take_chosen();
  void set_candidate(std::size_t index, const Event& event);

  EventHandler& handler_;
  Chooser& chooser_;
  EventQueue queue_;
  Instant now_{};
  std::uint64_t n_scheduled_ = 0;
  std::uint64_t n_handled_ = 0;

  // Used by choice only. Candidates are overwritten, never destroyed: their lists keep their
  // memory.
  std::vector<Event> ready_;  // all pending events of the earliest time, in order
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> places_;  // of the candidates, in ready_
};

}  // namespace remat
