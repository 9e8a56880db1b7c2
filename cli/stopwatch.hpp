#pragma once

namespace remat {

/// Wall-clock time since it was made. The only clock in the program: budgets end by it, and nothing
/// that is computed depends on it.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  double begin_;
};

}  // namespace remat
