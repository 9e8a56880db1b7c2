#pragma once

#include <string>

#include "sim/scenario.hpp"

namespace remat {

/// The scenario as a person reads it: protocol, tensors, statements with what they save, and the
/// schedule. For programs of one forward.
std::string program_text(const Scenario& scenario);

}  // namespace remat
