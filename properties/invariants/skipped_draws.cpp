#include "properties/invariants/skipped_draws.hpp"

#include <fmt/format.h>

#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

/// No draw is recorded as such where only the state's checksum is: names tell.
bool draws(std::string_view op) {
  constexpr std::string_view drawing[] = {"bernoulli", "dropout",     "rand",        "normal_",
                                          "uniform_",  "multinomial", "exponential_"};
  for (const std::string_view part : drawing)
    if (op.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace

void SkippedDraws::enter(const Facts& facts) {
  if (facts.in_replay()) off_.erase(facts.replay()->id);
}

void SkippedDraws::exit(const EventView& event, const Facts& facts) {
  const OpenCall* call = facts.excluded_call();
  const auto crc = event.integer(Field::rng_crc);
  if (call == nullptr || !call->is_replayed || !crc || !facts.in_replay()) return;
  const ForwardCall* forward = facts.excluded_calls().forward(*call);
  if (forward == nullptr || !forward->rng_crc || forward->rng_crc == crc) return;
  off_[facts.replay()->id] = {call->wrapper, call->number, event.seq(), forward->enter_seq};
}

bool SkippedDraws::is_off(const EventView& event, const Facts& facts) const {
  return !off_.empty() && facts.in_replay() && off_.contains(facts.replay()->id) &&
         facts.excluded_call() == nullptr && !event.has(Field::internal) &&
         draws(event.text(Field::name));
}

void SkippedDraws::tell(const EventView& event, const Facts& facts, Report& report) const {
  const Off& off = *off_.find(facts.replay()->id);
  report.found("rng_position", event.seq(),
               fmt::format("{} draws {}, but since {} the random state is not forward's: its body, "
                           "which drew in forward, was skipped; expected the generator to be put "
                           "to where that left it",
                           event.text(Field::name), where(event, facts),
                           shown_wrapper(off.wrapper, off.call, event.trace())),
               {off.forward_seq, off.exit_seq, event.seq()});
}

void SkippedDraws::end_replay(std::int64_t scope) {
  off_.erase(scope);
}

}  // namespace remat
