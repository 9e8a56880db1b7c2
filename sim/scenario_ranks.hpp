#pragma once

#include "model/json_place.hpp"
#include "model/program_json.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// How many ranks a scenario has, and the groups in which they issue collectives: all of them
/// first, under the name `world`. Throws InputError for ranks that there are not, or are twice in a
/// group.
void read_ranks(const JsonPlace& root, Scenario& scenario, ProgramReading& reading);

/// The program, as each rank runs it.
void read_programs(const JsonPlace& place, Scenario& scenario, ProgramReading& reading);

}  // namespace remat
