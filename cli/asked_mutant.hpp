#pragma once

#include <string>

#include "properties/mutants.hpp"

namespace remat {

/// The mutant that a user names, by its whole name or its number; none for an empty name. Throws
/// InputError that lists the known.
const Mutant* asked_mutant(const std::string& name);

}  // namespace remat
