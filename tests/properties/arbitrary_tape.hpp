#pragma once

#include <rapidcheck.h>
#include <cstdint>
#include <utility>
#include <vector>

#include "properties/choice_tape.hpp"

namespace remat {

/// The choices of a tape, for RapidCheck to draw, to shrink (fewer, smaller) and to print; a
/// property makes its ChoiceTape of them. `choices_max` is reached at RapidCheck's largest size.
inline rc::Gen<std::vector<std::uint64_t>> arbitrary_tape(std::size_t choices_max) {
  constexpr std::size_t size_max = 100;  // RapidCheck's own
  // Most choices are among few; a word of 64 random bits is a number that somebody must keep whole.
  auto choice = rc::gen::weightedOneOf<std::uint64_t>(
      {{8, rc::gen::inRange<std::uint64_t>(0, 256)},
       {1, rc::gen::resize(static_cast<int>(size_max), rc::gen::arbitrary<std::uint64_t>())}});
  return rc::gen::scale(static_cast<double>(choices_max) / size_max,
                        rc::gen::container<std::vector<std::uint64_t>>(std::move(choice)));
}

}  // namespace remat
