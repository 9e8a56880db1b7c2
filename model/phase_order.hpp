#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// One thing that a training loop does with its program.
struct PhaseStep {
  enum class Kind : std::uint8_t {
    step_begin,
    forward,
    backward,
    dx,
    dw,
    update,
    step_end
  } kind = Kind::forward;
  std::size_t forward = 0;  // of a forward: which one of the program
  std::optional<std::int64_t> microbatch = std::nullopt;
  bool retain = false;                               // a backward keeps its graph
  std::optional<std::int64_t> group = std::nullopt;  // exec group under which a backward runs
  // Leaves that a backward asks the gradients of; empty: all that there are.
  std::vector<ValueId> wrt = {};
};

/// What a training loop does, in order: all steps of it.
using PhaseOrder = std::vector<PhaseStep>;

}  // namespace remat
