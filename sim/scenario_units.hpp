#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/json_place.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// What the protocol object says of save units: `units`, `select`, `sub_models`, `keeps_any`,
/// `mode`. Throws InputError on a unit that nobody declared, an interval that ends where it starts,
/// and what the protocol has no use for.
void read_units(const JsonPlace& protocol, Scenario& scenario);

/// The units as a trace's header has them (`config.units`): what each stands for, and the models
/// that select it. Empty where there are none, and under a protocol that has no use for them.
std::string units_json(const Scenario& scenario);
/// Puts the same into a protocol object, as `read_units` reads it.
void write_units(const Scenario& scenario, nlohmann::json& protocol);

}  // namespace remat
