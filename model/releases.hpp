#pragma once

#include "model/program.hpp"

namespace remat {

/// Lets each variable of the forward go out of scope after the last statement that reads it, as a
/// function does that gives its variables new values. The root and leaves stay.
void add_releases(const Program& program, Forward& forward);

}  // namespace remat
