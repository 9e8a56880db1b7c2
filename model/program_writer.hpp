#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/program.hpp"

namespace remat {

/// The `program` of a scenario that reads back as this one: the same ops on the same tensors in the
/// same order. For programs of one forward, as ProgramBuilder makes them.
nlohmann::ordered_json program_json(const Program& program);

}  // namespace remat
