#include <fmt/format.h>

#include <utility>

#include "sim/rank.hpp"
#include "sim/wrapper_call.hpp"

// What is raised, how far up it goes, and what its message names.

namespace remat {

Flow Rank::fail(std::string_view code, std::string_view type, std::string message) {
  if (!error_) error_ = {std::string(code), std::string(type), std::move(message), 0};
  return Flow::failed;
}

/// A phase ends in the error: for its caller, where that catches it.
void Rank::log_error() {
  error_->seq = log_->seq();
  log_->error(error_->code, error_->type, error_->message, catches_);
}

/// The body's own code raises, or the next op's hooks are to.
Flow Rank::run_raise(Walk& walk, const Raise& raise) {
  switch (raise.runs) {
    case Raise::Runs::pack:
      walk.in_pack = &raise;
      return Flow::done;
    case Raise::Runs::unpack:
      walk.in_unpack = &raise;
      return Flow::done;
    case Raise::Runs::forward:
    case Raise::Runs::replay:
      if ((raise.runs == Raise::Runs::replay) != walk.is_replay) return Flow::done;
      break;
    case Raise::Runs::always:
      break;
  }
  return raise_as_told(raise, site_of(walk), "raised by the body's own code");
}

/// Once more, if it has not raised as often as it is to.
Flow Rank::raise_as_told(const Raise& raise, const CallSite& site, std::string_view what) {
  if (raise.times && counts_.raised[raise.number]++ >= *raise.times) return Flow::done;
  return raise_error(raise.type, fmt::format("{}: {}", described(site), what));
}

/// Backward asks for what the node has saved, and the hook that is asked raises.
Flow Rank::raise_in_unpack(const Node& node) {
  const bool raises = node.in_unpack != nullptr && !node.saves.empty() && options_.raises_in_hooks;
  if (!raises) return Flow::done;
  return raise_as_told(*node.in_unpack, node.site, "raised by an unpack hook");
}

/// The program's own code raises.
Flow Rank::raise_error(std::string_view type, std::string message) {
  const Flow flow = fail("E-USER", type, std::move(message));
  error_->is_raised = true;
  return flow;
}

/// The caller goes on after what its own code raised, without the variables that this was to let
/// go of.
Flow Rank::run_caught(Walk& walk, std::size_t at, const CatchBegin& caught) {
  const Flow flow = run(walk, at + 1, caught.end);
  if (flow != Flow::failed || !error_->is_raised) return flow;
  error_.reset();
  release_all(walk, at + 1, caught.end);
  return Flow::done;
}

/// What code that did not run to its end would have let go of.
void Rank::release_all(Walk& walk, std::size_t begin, std::size_t end) const {
  const std::vector<Statement>& statements = program_->forwards[walk.forward].statements;
  for (std::size_t at = begin; at < end; ++at) {
    const auto* gone = std::get_if<Release>(&statements[at]);
    if (gone == nullptr) continue;
    for (const ValueId value : gone->values)
      walk.variables.erase(value);
  }
}

/// When something is told: "micro-batch 1, backward".
std::string Rank::now() const {
  const std::string_view phase = name_of(log_->phase());
  return microbatch_ ? fmt::format("micro-batch {}, {}", *microbatch_, phase) : std::string(phase);
}

/// Where something is or was, and when it is told: "wrapper w#0 in r#2 (micro-batch 1, backward)".
std::string Rank::described(const CallSite& site) const {
  std::string text;
  if (!site.wrapper.empty()) text = fmt::format("wrapper {}#{} in ", site.wrapper, site.call);
  text += site.unit.empty() ? "code outside regions" : site.unit;
  if (site.invocation) text += fmt::format("#{}", *site.invocation);
  return text + fmt::format(" ({})", now());
}

CallSite Rank::site_of(const Walk& walk) const {
  const CallSite site = log_->unit();
  if (walk.wrapper == nullptr) return site;
  return site.within(walk.wrapper->wrapper->name, walk.wrapper->number);
}

CallSite Rank::site_of(const CheckpointFrame& frame) const {
  return {.unit = region_of(frame.forward, frame.begin).name,
          .invocation = frame.invocation,
          .wrapper = {}};
}

std::string Rank::described(const CheckpointFrame& frame) const {
  return described(site_of(frame));
}

std::string Rank::described(const CheckpointFrame& frame, const WrapperBegin& wrapper,
                            std::int64_t call) const {
  return described(site_of(frame).within(wrapper.name, call));
}

}  // namespace remat
