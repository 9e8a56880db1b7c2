#include "properties/invariants/collective_book.hpp"

#include <algorithm>

namespace remat {
namespace {

template <typename Value>
bool agree(const std::optional<Value>& a, const std::optional<Value>& b) {
  return !a || !b || *a == *b;
}

// Forgetting costs a move of what stays, so it waits until it is worth it.
constexpr std::int64_t calls_forgotten_at_once = 4096;
// Ranks that are recorded one after the other are compared over this many calls.
constexpr std::int64_t calls_of_one_rank_max = std::int64_t{1} << 18U;

}  // namespace

bool CollectiveCall::agrees_with(const CollectiveCall& other) const {
  return agree(name, other.name) && agree(tag, other.tag) && agree(n, other.n);
}

CollectiveCall collective_call(const EventView& event) {
  return {event.name(Field::name), event.name(Field::tag), event.integer(Field::n),
          event.integer(Field::rank).value_or(0), event.seq()};
}

std::optional<CollectiveCall> CollectiveGroup::issue(const CollectiveCall& call) {
  const std::int64_t number = issued_[call.rank]++;
  if (mismatched_ || number < first_) return std::nullopt;
  if (number == first_ + std::ssize(calls_)) {
    calls_.push_back(call);
    forget_what_nobody_else_reaches();
    return std::nullopt;
  }
  const CollectiveCall& first = calls_[static_cast<std::size_t>(number - first_)];
  if (!call.agrees_with(first)) {
    mismatched_ = true;
    return first;
  }
  forget_what_all_have_passed();
  return std::nullopt;
}

void CollectiveGroup::part_if_uneven() {
  for (const auto& [rank, n] : issued_)
    mismatched_ = mismatched_ || n != issued_.begin()->second;
}

std::optional<CollectiveCall> CollectiveGroup::call(std::int64_t number) const {
  if (number < first_ || number >= first_ + std::ssize(calls_)) return std::nullopt;
  return calls_[static_cast<std::size_t>(number - first_)];
}

/// A recording of one rank issues collectives for ever, and nobody comes to be compared with it.
void CollectiveGroup::forget_what_nobody_else_reaches() {
  if (issued_.size() > 1 || std::ssize(calls_) < calls_of_one_rank_max) return;
  const std::int64_t half = calls_of_one_rank_max / 2;
  calls_.erase(calls_.begin(), calls_.begin() + half);
  first_ += half;
}

void CollectiveGroup::forget_what_all_have_passed() {
  std::int64_t passed = issued_.begin()->second;
  for (const auto& [rank, n] : issued_)
    passed = std::min(passed, n);
  if (passed - first_ < calls_forgotten_at_once) return;
  calls_.erase(calls_.begin(), calls_.begin() + (passed - first_));
  first_ = passed;
}

}  // namespace remat
