#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/flat_map.hpp"
#include "sim/environment.hpp"
#include "sim/gradient.hpp"
#include "sim/tape.hpp"

namespace remat {

/// A forward whose graph is alive.
struct LiveGraph {
  std::size_t forward = 0;
  Environment variables;
  std::vector<ParamGroup> groups;  // once dx has run
  // By node and output: what dx left for dw.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Gradient> left_by_dx;
  std::vector<NodeRef> held;  // the groups' intermediates
  IdSet ran_in_dx;            // nodes
  bool half_failed = false;   // dx, or a dw that had begun: dw finds nothing to begin from

  /// A half failed: its caller never got what it was to leave, or has used it up.
  void forget_halves() {
    groups.clear();
    left_by_dx.clear();
    held.clear();
    ran_in_dx.clear();
    half_failed = true;
  }
};

}  // namespace remat
