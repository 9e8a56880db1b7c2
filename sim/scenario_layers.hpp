#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/json_place.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// `recompute_ratio` of a protocol object: a number for all models, or an object of numbers by
/// owner, where those that it does not name have all their layers checkpointed. Throws InputError
/// on what is no number from 0 to 1.
RecomputeRatio ratio_from(const JsonPlace& place);
/// The same as it is read; null where all layers are checkpointed.
nlohmann::json written_ratio(const RecomputeRatio& ratio);

/// Throws InputError where the protocol object says something of a model that no checkpointed
/// region of the program belongs to.
void check_models(const JsonPlace& protocol, const Scenario& scenario);
/// Of each model that some rank has layers of, how many they are: on the rank with most.
std::map<std::string, std::size_t> layers_of_models(const Scenario& scenario);

}  // namespace remat
