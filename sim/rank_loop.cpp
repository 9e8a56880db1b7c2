#include "sim/rank_loop.hpp"

#include <map>

#include "model/errors.hpp"

namespace remat {
namespace {

/// For each step, whether it is the last that needs its micro-batch's graph.
std::vector<bool> last_uses(const PhaseOrder& order) {
  std::vector<bool> last(order.size(), false);
  std::map<std::int64_t, bool> needed_later;
  for (std::size_t at = order.size(); at-- > 0;) {
    bool& needed = needed_later[order[at].microbatch.value_or(-1)];
    switch (order[at].kind) {
      case PhaseStep::Kind::backward:
      case PhaseStep::Kind::dx:
      case PhaseStep::Kind::dw:
        last[at] = !needed;
        needed = true;
        break;
      case PhaseStep::Kind::forward:
        needed = false;
        break;
      default:
        break;
    }
  }
  return last;
}

}  // namespace

RankLoop::RankLoop(std::size_t number, const RankPlan& plan, const Protocol& protocol,
                   const RankOptions& options, const std::optional<OffloadPolicy>& offload,
                   EventLog& log)
    : number_(number),
      plan_(plan),
      is_last_use_(last_uses(*plan.order)),
      log_(&log),
      rank_(*plan.program, protocol, options, log, offload) {}

bool RankLoop::run_next() {
  const std::size_t at = at_++;
  const PhaseStep& step = (*plan_.order)[at];
  rank_.set_catches(step.catches);
  const Flow flow = run(step);
  REMAT_INVARIANT(flow != Flow::stopped);
  if (flow != Flow::done && !step.catches) return false;
  if (flow != Flow::done) catch_error(at);
  if (is_last_use_[at]) rank_.drop_graph(step.microbatch);
  if (after_phase_ != nullptr) (*after_phase_)(rank_, step);
  return true;
}

void RankLoop::start_again() {
  at_ = 0;
  rank_.forget_contributions(0);
  contributions_by_step_.clear();
  caught_.clear();
  use_ = {};
}

/// The loop takes note of the error and goes on. What a forward had made is nobody's then: its
/// caller has no loss to hold on to.
void RankLoop::catch_error(std::size_t at) {
  const PhaseStep& step = (*plan_.order)[at];
  caught_.push_back({number_, at, *rank_.error()});
  rank_.forget_error();
  if (step.kind == PhaseStep::Kind::forward) rank_.drop_graph(step.microbatch);
}

void RankLoop::note_residents() {
  use_.resident = rank_.ledger().live();
  use_.resident_bytes = use_.resident.total;
  use_.resident_by_forward.push_back(use_.resident_bytes);
}

Flow RankLoop::run(const PhaseStep& step) {
  switch (step.kind) {
    case PhaseStep::Kind::step_begin:
      log_->step(true, step_);
      return Flow::done;
    case PhaseStep::Kind::step_end:
      rank_.end_step();
      log_->step(false, step_++);
      contributions_by_step_.push_back(rank_.contributions().size());
      return Flow::done;
    case PhaseStep::Kind::forward: {
      const Flow flow = rank_.run_forward(step.forward, step.microbatch);
      // Of one that is caught nothing will stay.
      if (flow == Flow::done || !step.catches) note_residents();
      return flow;
    }
    case PhaseStep::Kind::backward:
      return rank_.run_backward(step.microbatch, step.retain, step.group, step.wrt, step.root);
    case PhaseStep::Kind::dx:
      return rank_.run_dx(step.microbatch, step.group);
    case PhaseStep::Kind::dw:
      return rank_.run_dw(step.microbatch, step.group);
    case PhaseStep::Kind::update:
      rank_.run_update(step.writes);
      return Flow::done;
    case PhaseStep::Kind::zero_grad:
      rank_.zero_gradients();
      rank_.forget_contributions(contributions_by_step_.empty() ? 0
                                                                : contributions_by_step_.back());
      return Flow::done;
    case PhaseStep::Kind::session_open:
      rank_.open_session(step.session, step.retain);
      return Flow::done;
    case PhaseStep::Kind::session_close:
      rank_.close_session(step.session);
      return Flow::done;
    case PhaseStep::Kind::session_clear:
      rank_.clear_session(step.session);
      return Flow::done;
    case PhaseStep::Kind::prefire:
      return rank_.run_prefire(step.microbatch, step.frames);
  }
  return Flow::done;
}

RankUse RankLoop::use() const {
  RankUse use = use_;
  use.end = log_->now();
  use.at_peak = rank_.ledger().at_peak();
  use.replay_peak_bytes = rank_.counts().replay_peak;
  use.rederived_bytes = rank_.ledger().most_of(OwnerClass::slot);
  use.hook_calls = rank_.counts().hook_calls;
  use.offloaded = rank_.ledger().levels();
  use.copies_waited = rank_.copies_waited();
  return use;
}

}  // namespace remat
