#pragma once

#include <cstddef>
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
  /// A choice that was made elsewhere: the tape gets it instead of drawing.
  void settle(std::uint64_t choice) { chosen_.push_back(choice); }
  /// A choice of all 64 bits.
  std::uint64_t bits();
  /// Whether there is one more of something: `n` times out of `n` + 1, and not on an empty tape.
  bool more(std::uint64_t n) { return choose(n + 1) != 0; }

  /// Choices that stand for one part of what is made (a region, a statement): a shrinker can take
  /// the part away by taking these away.
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::size_t position() const { return chosen_.size(); }
  void end_span(std::size_t begin) { spans_.push_back({begin, chosen_.size()}); }
  /// In the order in which they ended: parts before the part that holds them.
  const std::vector<Span>& spans() const { return spans_; }

  /// What was chosen so far: a tape of these gives the same again.
  const std::vector<std::uint64_t>& chosen() const { return chosen_; }

 private:
  ChoiceTape() = default;
  std::uint64_t next() const;

  std::vector<std::uint64_t> recorded_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::uint64_t> chosen_;
  std::vector<Span> spans_;
};

}  // namespace remat
