#include <fmt/format.h>

#include <algorithm>

#include "sim/rank.hpp"

// Recompute sessions: frames that are replayed before a backward asks, and the key that what the
// replays bring is kept under (protocols.md §3, observed-hyperparallel.md §6 R21 to R23).

namespace remat {
namespace {

constexpr std::string_view error_of_sessions =
    "hyper_parallel.platform.torch.activation_checkpoint.checkpoint.CheckpointError";
constexpr std::string_view error_of_torch = "torch.utils.checkpoint.CheckpointError";

}  // namespace

/// What a frame's checkpoint raises, as the code that made the frame names it.
std::string_view Rank::checkpoint_error(const CheckpointFrame& frame) const {
  const bool knows_sessions = region_of(frame.forward, frame.begin).knows_sessions;
  return knows_sessions ? error_of_sessions : error_of_torch;
}

/// The session in scope answers for the frames that are registered under it, whoever asks.
ReplayKey Rank::key_for(const CheckpointFrame& frame, const ReplayKey& asked_by) const {
  if (!session_) return asked_by;
  const auto registered = registered_.find(session_->key.number);
  const bool is_bound = registered != registered_.end() && registered->second.count(frame.number);
  return is_bound ? session_->key : asked_by;
}

/// What was read under the key may be read again.
bool Rank::is_retained(const ReplayKey& key) const {
  return session_ && session_->retains && session_->key == key;
}

void Rank::open_session(std::string_view name, bool retains) {
  session_ = OpenSession{log_->session_key(name), retains};
  log_->session(Kind::session_open, session_->key, retains);
}

/// The frames stay registered, and what their replays brought stays with them.
void Rank::close_session(std::string_view name) {
  log_->session(Kind::session_close, log_->session_key(name), std::nullopt);
  session_.reset();
}

/// Excluded regions' entries do not come back: a replay after this finds none.
void Rank::clear_session(std::string_view name) {
  const ReplayKey key = log_->session_key(name);
  registered_.erase(key.number);
  for (const std::unique_ptr<CheckpointFrame>& frame : frames_) {
    if (frame == nullptr) continue;
    std::erase_if(frame->sessions, [&](const ReplaySession& replay) { return replay.key == key; });
  }
  log_->session(Kind::session_clear, key, std::nullopt);
}

Flow Rank::run_prefire(std::optional<std::int64_t> microbatch,
                       const std::vector<std::int64_t>& frames) {
  begin_microbatch(microbatch, Phase::pretrigger);
  log_->phase_border(true, std::nullopt);
  Flow flow = Flow::done;
  for (const std::int64_t number : frames) {
    flow = prefire(number);
    if (flow != Flow::done) break;
  }
  return finish_phase(flow);
}

Flow Rank::prefire(std::int64_t number) {
  const auto found = std::find_if(frames_.begin(), frames_.end(), [&](const auto& frame) {
    return frame != nullptr && frame->number == number;
  });
  if (!session_ || found == frames_.end()) {
    return fail("E-UNKNOWN", "builtins.RuntimeError",
                fmt::format("frame {} is to be replayed {}", number,
                            session_ ? "after its graph is gone" : "outside any session"));
  }
  registered_[session_->key.number].insert(number);
  const ReplayKey key = session_->key;
  if (session_of(**found, key).replayed) return Flow::done;
  // No graph task asks: a frame of another session that has to be read on the way has its own key.
  return replay(static_cast<std::uint32_t>(found - frames_.begin()), key,
                {ReplayKey::Kind::graph_task, log_->book().graph_task++});
}

/// A region that knows sessions is not entered while one is in scope, in a replay or in forward.
Flow Rank::refuse_under_session(const RegionBegin& region) {
  if (!session_ || !region.knows_sessions) return Flow::done;
  return fail("E-SESSION", error_of_sessions,
              fmt::format("{}: a checkpointed region is entered while a recompute session is open",
                          described(log_->unit())));
}

}  // namespace remat
