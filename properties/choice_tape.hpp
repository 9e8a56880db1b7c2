#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace remat {

/// A sequence of choices that a generator draws from: the same tape gives the same thing, and a
/// shorter tape with smaller choices a simpler one. Filled from a seed, without end, or with
/// choices that were recorded.
class ChoiceTape {
 public:
  static ChoiceTape from_seed(std::uint64_t seed);
  /// Behind the last of `choices` each choice is 0.
  explicit ChoiceTape(std::vector<std::uint64_t> choices) : recorded_(std::move(choices)) {}

  /// A choice among `n` > 0: at least 0, less than `n`. Generators take 0 as the simplest.
  std::uint64_t choose(std::uint64_t n);
  /// A choice of all 64 bits.
  std::uint64_t bits();

  /// What was chosen so far: a tape of these gives the same again.
  const std::vector<std::uint64_t>& chosen() const { return chosen_; }

 private:
  ChoiceTape() = default;
  std::uint64_t next() const;

  std::vector<std::uint64_t> recorded_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::uint64_t> chosen_;
};

}  // namespace remat
