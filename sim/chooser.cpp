#include "sim/chooser.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "model/random_bits.hpp"

namespace remat {
namespace {

/// Keeps these random bits apart from those that others draw with the same seed ("chooser").
constexpr std::uint64_t chooser_stream = 0x63686f6f736572ULL;

/// Lists are short: an op touches a handful of storages.
bool have_conflict(const std::vector<Touch>& list, const std::vector<Touch>& other) {
  for (const Touch& a : list) {
    for (const Touch& b : other) {
      if (a.number == b.number && (a.is_write || b.is_write)) return true;
    }
  }
  return false;
}

}  // namespace

bool Footprint::is_independent_of(const Footprint& other) const {
  return !have_conflict(storages, other.storages) && !have_conflict(slots, other.slots) &&
         !have_conflict(channels, other.channels);
}

void Footprint::clear() {
  storages.clear();
  slots.clear();
  channels.clear();
}

std::size_t Chooser::choose(std::span<const Candidate> candidates) {
  REMAT_INVARIANT(candidates.size() >= 2);
  const std::size_t chosen = pick(candidates);
  REMAT_INVARIANT(chosen < candidates.size());
  if (is_recording_) {
    const Event& event = candidates[chosen].event;
    recorded_.push_back({event.rank, event.stream, static_cast<std::uint32_t>(candidates.size())});
  }
  return chosen;
}

std::size_t SeededRandom::pick(std::span<const Candidate> candidates) {
  // 64 bits among a few candidates: the remainder's bias is below one in a billion billions.
  return random_bits(seed_, chooser_stream, n_chosen_++) % candidates.size();
}

std::size_t RecordedChoices::pick(std::span<const Candidate> candidates) {
  if (misfit_) return 0;
  const auto n_candidates = static_cast<std::uint32_t>(candidates.size());
  if (position_ == choices_.size()) {
    misfit_ = ChoiceMisfit{position_, std::nullopt, n_candidates};
    return 0;
  }
  const Choice& choice = choices_[position_];
  const auto found =
      std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
        return candidate.event.rank == choice.rank && candidate.event.stream == choice.stream;
      });
  if (found == candidates.end() || choice.n_candidates != n_candidates) {
    misfit_ = ChoiceMisfit{position_, choice, n_candidates};
    return 0;
  }
  ++position_;
  return static_cast<std::size_t>(found - candidates.begin());
}

std::optional<ChoiceMisfit> RecordedChoices::misfit_at_end() const {
  if (misfit_ || position_ == choices_.size()) return misfit_;
  return ChoiceMisfit{position_, choices_[position_], 0};
}

bool ExhaustiveChoices::next_run() {
  if (n_runs_ > 0) {
    // A run that is shorter than the one that it repeats was not the same run.
    REMAT_INVARIANT(depth_ == turns_.size());
    while (!turns_.empty() && turns_.back().chosen + 1 == turns_.back().n_candidates)
      turns_.pop_back();
    depth_ = 0;
    if (turns_.empty()) return false;
    ++turns_.back().chosen;
  }
  ++n_runs_;
  return true;
}

std::size_t ExhaustiveChoices::pick(std::span<const Candidate> candidates) {
  REMAT_INVARIANT(n_runs_ > 0);
  if (depth_ == turns_.size()) turns_.push_back({0, candidates.size()});
  const Turn& turn = turns_[depth_++];
  REMAT_INVARIANT(turn.n_candidates == candidates.size());
  return turn.chosen;
}

}  // namespace remat
