#include "model/errors.hpp"

namespace remat {

void throw_broken_invariant(const char* condition, const char* file, int line) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": broken: " + condition);
}

}  // namespace remat
