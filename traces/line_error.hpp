#pragma once

#include <stdexcept>

namespace remat {

/// One line is not an event: what is wrong and what was expected, without file and line.
class LineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace remat
