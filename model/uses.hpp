#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "model/program.hpp"

namespace remat {

/// What a statement does with a value.
enum class Use : std::uint8_t {
  read,      // takes it: an op's input, an argument of the region that begins
  saved,     // keeps it for backward
  made,      // gives it a value
  written,   // a leaf that it writes: what it gives a value is the leaf itself
  handed_on  // returned by the excluded region that ends, or given another name
};

/// Each value that the statement uses, in the order in which it does. Boundaries that a recording
/// tells of are no use.
void each_use(const Forward& forward, std::size_t at,
              const std::function<void(ValueId, Use)>& visit);

}  // namespace remat
