#pragma once

#include <cstddef>
#include <functional>

#include "model/program.hpp"

namespace remat {

/// Each value that the statement takes, saves, makes or hands on; of a region that begins there its
/// arguments.
void each_use(const Forward& forward, std::size_t at, const std::function<void(ValueId)>& use);

/// Lets each variable of the forward go out of scope after the last statement that reads it, as a
/// function does that gives its variables new values. The root and leaves stay.
void add_releases(const Program& program, Forward& forward);

}  // namespace remat
