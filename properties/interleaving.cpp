#include "properties/interleaving.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/errors.hpp"

namespace remat {

std::string_view name_of(Strategy strategy) {
  constexpr std::array<std::string_view, strategy_count> names = {"random", "remaining_work",
                                                                  "pct2", "pct3", "pct5"};
  return names[static_cast<std::size_t>(strategy)];
}

Interleaving::Interleaving(ChoiceTape& tape, Strategy strategy, std::vector<std::uint32_t> lengths)
    : tape_(&tape), strategy_(strategy), left_(std::move(lengths)) {
  for (const std::uint32_t length : left_)
    n_left_ += length;
  switch (strategy_) {
    case Strategy::random:
    case Strategy::remaining_work:
      break;
    case Strategy::pct2:
      draw_priorities(2);
      break;
    case Strategy::pct3:
      draw_priorities(3);
      break;
    case Strategy::pct5:
      draw_priorities(5);
      break;
  }
}

/// Distinct priorities above those that the change points give, which are 0 to depth - 2.
void Interleaving::draw_priorities(std::size_t depth) {
  if (left_.size() < 2) return;
  std::vector<std::size_t> free;
  for (std::size_t i = left_.size(); i-- > 0;)
    free.push_back(depth - 1 + i);
  for (std::size_t i = 0; i < left_.size(); ++i) {
    const std::size_t at = tape_->choose(free.size());
    priorities_.push_back(free[at]);
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (std::size_t i = 0; i + 1 < depth; ++i)
    change_points_.push_back(1 + tape_->choose(n_left_));
}

std::size_t Interleaving::next() {
  REMAT_INVARIANT(n_left_ > 0);
  std::size_t taken = 0;
  if (strategy_ == Strategy::random) {
    taken = at_random();
  } else if (strategy_ == Strategy::remaining_work) {
    taken = by_remaining_work();
  } else {
    taken = by_priority();
  }
  --left_[taken];
  --n_left_;
  ++n_taken_;
  for (std::size_t i = 0; i < change_points_.size(); ++i)
    if (change_points_[i] == n_taken_) priorities_[taken] = i;
  return taken;
}

std::size_t Interleaving::at_random() {
  const auto n_able = static_cast<std::uint64_t>(
      std::count_if(left_.begin(), left_.end(), [](std::uint32_t left) { return left > 0; }));
  std::uint64_t skipped = n_able > 1 ? tape_->choose(n_able) : 0;
  for (std::size_t i = 0;; ++i)
    if (left_[i] > 0 && skipped-- == 0) return i;
}

std::size_t Interleaving::by_remaining_work() {
  const bool is_open = std::find(left_.begin(), left_.end(), n_left_) == left_.end();
  std::uint64_t skipped = is_open ? tape_->choose(n_left_) : 0;
  for (std::size_t i = 0;; ++i) {
    if (skipped < left_[i]) return i;
    skipped -= left_[i];
  }
}

std::size_t Interleaving::by_priority() {
  std::size_t best = left_.size();
  for (std::size_t i = 0; i < left_.size(); ++i) {
    if (left_[i] == 0) continue;
    if (best == left_.size() || (!priorities_.empty() && priorities_[i] > priorities_[best]))
      best = i;
  }
  return best;
}

}  // namespace remat
