#include "properties/choice_tape.hpp"

#include "model/errors.hpp"
#include "model/random_bits.hpp"

namespace remat {

ChoiceTape ChoiceTape::from_seed(std::uint64_t seed) {
  ChoiceTape tape;
  tape.seed_ = seed;
  return tape;
}

std::uint64_t ChoiceTape::next() const {
  constexpr std::uint64_t stream = 0;
  if (seed_) return random_bits(*seed_, stream, chosen_.size());
  return chosen_.size() < recorded_.size() ? recorded_[chosen_.size()] : 0;
}

std::uint64_t ChoiceTape::choose(std::uint64_t n) {
  REMAT_INVARIANT(n > 0);
  chosen_.push_back(next() % n);  // the remainder, so that a smaller choice stays smaller
  return chosen_.back();
}

std::uint64_t ChoiceTape::bits() {
  chosen_.push_back(next());
  return chosen_.back();
}

}  // namespace remat
