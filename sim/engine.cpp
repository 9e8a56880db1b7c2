#include "sim/engine.hpp"

#include <algorithm>
#include <span>

namespace remat {

RunOutcome Engine::run(std::uint64_t events_max) {
  // An earlier run may have stopped in the middle of an instant, and had another way to go on.
  for (const Event& event : ready_)
    queue_.push(event);
  ready_.clear();
  return chooser_.needs_candidates() ? run_by_choice(events_max) : run_in_order(events_max);
}

RunOutcome Engine::run_in_order(std::uint64_t events_max) {
  for (std::uint64_t n = 0; !queue_.empty(); ++n) {
    if (n == events_max) return RunOutcome::events_max_reached;
    hand_over(queue_.pop());
  }
  return RunOutcome::done;
}

RunOutcome Engine::run_by_choice(std::uint64_t events_max) {
  for (std::uint64_t n = 0; n_pending() > 0; ++n) {
    if (n == events_max) return RunOutcome::events_max_reached;
    gather_ready();
    hand_over(take_chosen());
  }
  return RunOutcome::done;
}

void Engine::hand_over(const Event& event) {
  REMAT_INVARIANT(event.when >= now_);
  now_ = event.when;
  ++n_handled_;
  handler_.handle(*this, event);
}

/// Takes all events of the earliest time out of the queue. Those that were ready before are of that
/// time too: since they are, nothing can have been scheduled before them.
void Engine::gather_ready() {
  const Instant earliest = ready_.empty() ? queue_.top().when : ready_.front().when;
  while (!queue_.empty() && queue_.top().when == earliest) {
    const Event event = queue_.pop();
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), event, comes_before), event);
  }
}

/// Takes out of the ready events the one that comes next: of each stream the first could.
Event Engine::take_chosen() {
  places_.clear();
  for (std::size_t place = 0; place < ready_.size(); ++place) {
    if (place == 0 || !is_same_stream(ready_[place - 1], ready_[place])) places_.push_back(place);
  }
  std::size_t chosen = 0;
  if (places_.size() > 1) {
    for (std::size_t i = 0; i < places_.size(); ++i)
      set_candidate(i, ready_[places_[i]]);
    chosen = chooser_.choose(std::span(candidates_).first(places_.size()));
  }
  const std::size_t place = places_[chosen];
  const Event event = ready_[place];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(place));
  return event;
}

void Engine::set_candidate(std::size_t index, const Event& event) {
  if (index == candidates_.size()) candidates_.push_back({});
  Candidate& candidate = candidates_[index];
  candidate.event = event;
  candidate.footprint.clear();
  if (chooser_.needs_footprints()) handler_.footprint(event, candidate.footprint);
}

}  // namespace remat
