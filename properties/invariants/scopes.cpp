#include "properties/invariants/scopes.hpp"

#include <algorithm>

namespace remat {
namespace {

constexpr std::int64_t unrecorded = -1;  // a rank or thread that an event does not give

bool is_replay(const EventView& event) {
  return event.text(Field::exec) == "replay";
}

/// A replay of the same call, or of the same region where calls have no number, ends one that
/// nothing ended.
bool replaces(const Scope& before, const Scope& replay) {
  if (!before.replay) return false;
  return before.framed ? before.frame == replay.frame : before.unit == replay.unit;
}

}  // namespace

// R4: an event that does not record its rank or thread is not elsewhere for that.
ScopeBook::Place ScopeBook::place_of(const EventView& event) const {
  const Place given = {event.integer(Field::rank).value_or(unrecorded),
                       event.integer(Field::thread).value_or(unrecorded)};
  if (stacks_.contains(given) || stacks_.empty()) return given;
  const auto agrees = [](std::int64_t a, std::int64_t b) {
    return a == b || a == unrecorded || b == unrecorded;
  };
  const auto fits = [&](const Place& place) {
    return agrees(place.first, given.first) && agrees(place.second, given.second);
  };
  if (last_place_ && stacks_.contains(*last_place_) && fits(*last_place_)) return *last_place_;
  for (const auto& [place, scopes] : stacks_)
    if (fits(place)) return place;
  return given;
}

std::optional<std::int64_t> ScopeBook::frame_of(const EventView& event) {
  if (const auto frame = event.integer(Field::frame)) return frame;
  const auto unit = event.name(Field::unit);
  if (!unit) return std::nullopt;
  const Call call{event.integer(Field::rank).value_or(-1), unit->index(),
                  event.integer(Field::inv).value_or(-1),
                  event.integer(Field::microbatch).value_or(-1)};
  const auto [entry, is_new] = stand_ins_.try_emplace(call, next_stand_in_);
  if (is_new) --next_stand_in_;
  return entry->second;
}

bool ScopeBook::lies_in(const Scope& scope, const EventView& event) {
  if (scope.stopped) return false;
  if (!scope.replay) return true;
  // A hand-made replay need not say where it ends: what calls itself forward or backward is outside
  // (R2).
  return event.phase() == Phase::replay || event.phase() == Phase::none;
}

const std::vector<Scope>& ScopeBook::stack(const EventView& event) const {
  static const std::vector<Scope> empty;
  const auto found = stacks_.find(place_of(event));
  return found == stacks_.end() ? empty : found->second;
}

const Scope* ScopeBook::replay(const EventView& event) const {
  const std::vector<Scope>& scopes = stack(event);
  for (std::size_t i = scopes.size(); i-- > 0;) {
    if (!lies_in(scopes[i], event)) continue;
    if (scopes[i].replay) return &scopes[i];
  }
  return nullptr;
}

const Scope* ScopeBook::of_frame(const EventView& event, std::int64_t frame) const {
  const std::vector<Scope>& scopes = stack(event);
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (scopes[i].frame == frame) return &scopes[i];
  return nullptr;
}

void ScopeBook::bodies(const EventView& event, std::vector<Body>& into) {
  into.clear();
  const std::vector<Scope>& scopes = stack(event);
  const auto unit = event.name(Field::unit);
  bool unit_seen = !unit.has_value();
  for (std::size_t i = scopes.size(); i-- > 0;) {
    const Scope& scope = scopes[i];
    if (!lies_in(scope, event)) continue;
    unit_seen = unit_seen || scope.unit == unit;
    if (scope.frame != no_frame)
      into.push_back({scope.frame, scope.replay, true, scope.id, scope.begin_seq});
    if (scope.replay) break;
  }
  if (unit_seen) return;
  // Forward of a region that no scope tells of: the ops that carry its name.
  const std::int64_t key = *frame_of(event);
  Frame& frame = frames_[key];
  if (!frame.forward_known) frame.forward_seq = event.seq();
  frame.forward_known = true;
  frame.unit = unit;
  frame.invocation = event.integer(Field::inv);
  frame.microbatch = event.integer(Field::microbatch);
  into.insert(into.begin(), {key, false, false, 0, frame.forward_seq});
}

Frame& ScopeBook::create_frame(std::int64_t key, const EventView& event) {
  Frame& frame = frames_[key];
  // What is saved for a frame may carry the name of a region inside it: the first to tell is right.
  if (!frame.unit) frame.unit = event.name(Field::unit);
  if (!frame.invocation) frame.invocation = event.integer(Field::inv);
  if (!frame.microbatch) frame.microbatch = event.integer(Field::microbatch);
  return frame;
}

void ScopeBook::begin(const EventView& event, std::optional<SessionKey> session) {
  const auto unit = event.name(Field::unit);
  if (!unit) return;
  last_place_ = place_of(event);
  std::vector<Scope>& scopes = stacks_[*last_place_];
  Scope scope;
  scope.id = next_scope_++;
  scope.replay = is_replay(event);
  scope.framed = event.has(Field::frame);
  scope.unit = *unit;
  scope.session = session;
  scope.begin_seq = event.seq();
  const bool only_a_name = event.boolean(Field::checkpointed) == false;
  if (!only_a_name) scope.frame = *frame_of(event);
  if (scope.replay) {
    if (!scopes.empty() && replaces(scopes.back(), scope)) scopes.pop_back();
    if (Frame* frame = frames_.find(scope.frame)) ++frame->replays;
  } else if (!only_a_name) {
    Frame& frame = create_frame(scope.frame, event);
    if (!frame.forward_known) frame.forward_seq = event.seq();
    frame.forward_open = frame.forward_known = frame.scoped = true;
  }
  scopes.push_back(scope);
}

std::optional<Scope> ScopeBook::end(const EventView& event) {
  const auto unit = event.name(Field::unit);
  const auto found_stack = stacks_.find(place_of(event));
  if (!unit || found_stack == stacks_.end()) return std::nullopt;
  std::vector<Scope>& scopes = found_stack->second;
  const bool replay = is_replay(event);
  for (std::size_t i = scopes.size(); i-- > 0;) {
    if (scopes[i].unit != *unit || scopes[i].replay != replay) continue;
    const Scope ended = scopes[i];
    scopes.resize(i);  // what ran inside it has ended too
    if (Frame* frame = frames_.find(ended.frame); frame != nullptr && !replay)
      frame->forward_open = false;
    return ended;
  }
  return std::nullopt;
}

std::vector<std::int64_t> ScopeBook::stand_ins_not_replayed() const {
  std::vector<std::int64_t> keys;
  for (const auto& [call, key] : stand_ins_) {
    if (const Frame* frame = frames_.find(key); frame != nullptr && frame->replays == 0)
      keys.push_back(key);
  }
  std::sort(keys.rbegin(), keys.rend());  // stand-ins count downwards
  return keys;
}

void ScopeBook::early_stop(const EventView& event) {
  const auto found = stacks_.find(place_of(event));
  if (found == stacks_.end()) return;
  const auto unit = event.name(Field::unit);
  std::vector<Scope>& scopes = found->second;
  for (std::size_t i = scopes.size(); i-- > 0;) {
    if (!scopes[i].replay || (unit && scopes[i].unit != *unit)) continue;
    for (std::size_t inner = i; inner < scopes.size(); ++inner)
      scopes[inner].stopped = true;
    return;
  }
}

std::vector<std::int64_t> ScopeBook::end_step(std::optional<std::int64_t> rank) {
  std::vector<std::int64_t> gone;
  std::erase_if(stand_ins_, [&](const auto& entry) {
    if (rank && std::get<0>(entry.first) != *rank) return false;
    frames_.erase(entry.second);
    gone.push_back(entry.second);
    return true;
  });
  std::erase_if(stacks_, [&](const auto& entry) { return !rank || entry.first.first == *rank; });
  return gone;
}

}  // namespace remat
