#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/program.hpp"
#include "model/ring.hpp"

namespace remat {

/// What a simulated run was stopped by.
struct SimulatedError {
  std::string code;  // of protocols.md §1.2
  std::string type;  // the exception's, as a real system would name it
  std::string message;
  std::int64_t seq = 0;    // of its event in the trace
  bool is_raised = false;  // by the program's own code, which may catch it
};

/// What one phase added to a leaf's gradient.
struct Contribution {
  ValueId leaf{0};
  Ring value;
};

/// How much of a rank's book-keeping is in use.
struct RankContents {
  std::size_t storages = 0;
  std::size_t nodes = 0;
  std::size_t frames = 0;
  std::int64_t holders = 0;      // frames' slots
  std::int64_t input_slots = 0;  // excluded regions' slots that wait for a replay, or have it
  std::size_t entries = 0;       // what excluded regions left for a replay
  std::size_t tables = 0;        // places in all of the tables, used or not

  friend bool operator==(const RankContents&, const RankContents&) = default;
};

}  // namespace remat
