#pragma once

#include <cstdint>
#include <vector>

#include "model/program.hpp"
#include "model/ring.hpp"
#include "sim/ledger.hpp"

namespace remat {

/// A gradient on its way.
struct Gradient {
  Owned hold;
  std::int64_t id = 0;
  Ring value;
};

/// Roots and parameters of one graph task of a dw half.
struct ParamGroup {
  std::vector<std::uint32_t> intermediates;
  std::vector<ValueId> params;
};

}  // namespace remat
