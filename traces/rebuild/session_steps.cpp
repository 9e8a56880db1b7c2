#include "traces/rebuild/session_steps.hpp"

#include <utility>

namespace remat {

std::string SessionSteps::name_of(const EventView& event) {
  const auto session = event.session(Field::gid);
  if (!session) {
    refuse("a session without an id");
    return {};
  }
  const SessionName& name = trace_->session(*session);
  if (name.name) return std::string(trace_->names()[*name.name]);
  return std::to_string(name.number.value_or(0));
}

void SessionSteps::begin_phase() {
  within_ = Within::phase;
  phase_at_ = order_->size() - 1;
  n_opened_ = 0;
}

void SessionSteps::begin_prefire(std::optional<std::int64_t> microbatch,
                                 std::vector<std::int64_t> frames) {
  within_ = Within::prefire;
  microbatch_ = microbatch;
  frames_ = std::move(frames);
  n_opened_ = 0;
  if (in_scope_) prefire(frames_);
}

void SessionSteps::end_phase() {
  if (within_ == Within::prefire && n_opened_ == 0 && !in_scope_)
    refuse("a pretrigger phase outside any session: what it reads is not told");
  within_ = Within::no_phase;
}

void SessionSteps::prefire(std::vector<std::int64_t> frames) {
  order_->push_back(
      {.kind = PhaseStep::Kind::prefire, .microbatch = microbatch_, .frames = std::move(frames)});
}

void SessionSteps::open(const EventView& event, bool runs_already) {
  const PhaseStep step{.kind = PhaseStep::Kind::session_open,
                       .retain = event.is_true(Field::retain),
                       .session = name_of(event)};
  if (in_scope_) refuse("a session is opened inside another");
  in_scope_ = step.session;
  ++n_opened_;
  if (within_ == Within::prefire) {
    open_for_prefire(event, step);
  } else if (within_ == Within::no_phase) {
    order_->push_back(step);
  } else {
    if (n_opened_ > 1 || runs_already)
      refuse("a session is opened in the middle of a phase: what ran before is not told");
    order_->insert(order_->begin() + static_cast<std::ptrdiff_t>(phase_at_), step);
    ++phase_at_;
  }
}

/// One session for all frames, or one each, which a handle on the frame opens itself.
void SessionSteps::open_for_prefire(const EventView& event, const PhaseStep& step) {
  order_->push_back(step);
  if (event.text(Field::cause) != "recompute_handle") {
    if (n_opened_ > 1) refuse("a pretrigger phase of several sessions");
    prefire(frames_);
  } else if (n_opened_ > frames_.size()) {
    refuse("a pretrigger phase opens a session for a frame that is not told");
  } else {
    prefire({frames_[n_opened_ - 1]});
  }
}

void SessionSteps::close(const EventView& event) {
  const std::string name = name_of(event);
  if (in_scope_ != name) {
    refuse("a session is closed that is not in scope");
    return;
  }
  if (within_ != Within::no_phase && n_opened_ == 0)
    refuse("a session of before is closed in the middle of a phase");
  if (within_ == Within::no_phase && order_->back().kind == PhaseStep::Kind::session_open)
    refuse("a session in which nothing is recorded: what its owner did is not told");
  in_scope_.reset();
  order_->push_back({.kind = PhaseStep::Kind::session_close, .session = name});
}

void SessionSteps::clear(const EventView& event) {
  const std::string name = name_of(event);
  if (within_ != Within::no_phase && (n_opened_ == 0 || in_scope_))
    refuse("a session is cleared in the middle of a phase");
  order_->push_back({.kind = PhaseStep::Kind::session_clear, .session = name});
}

}  // namespace remat
