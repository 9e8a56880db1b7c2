#include "cli/stopwatch.hpp"

#include <chrono>

namespace remat {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Stopwatch::Stopwatch() : begin_(now()) {}

double Stopwatch::seconds() const {
  return now() - begin_;
}

}  // namespace remat
