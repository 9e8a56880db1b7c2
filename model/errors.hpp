#pragma once

#include <stdexcept>
#include <string>

namespace remat {

/// The user's input is wrong. `what()` is a finished line: FILE:LINE: what is wrong, what was
/// expected.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Our own code is wrong: a broken REMAT_INVARIANT. Caught once, in main.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_broken_invariant(const char* condition, const char* file, int line);

}  // namespace remat

/// Always on, in every build type: what must hold wherever our code is right.
#define REMAT_INVARIANT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::remat::throw_broken_invariant(#condition, __FILE__, __LINE__))
