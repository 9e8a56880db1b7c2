#pragma once

#include <string>

#include "sim/scenario.hpp"

namespace remat {

/// What a scenario file says beside what is run.
struct ScenarioRemarks {
  std::string about;
  std::string fuzz_case;  // the token of the case that it was made of
};

/// The scenario as a file that reads back as this one, and simulates to the same trace. For
/// programs of one forward, as ProgramBuilder makes them.
std::string scenario_json(const Scenario& scenario, const ScenarioRemarks& remarks);

/// A phase of the loop as an action of a schedule: "F0.1", "UPDATE". Not for the ends of a step.
std::string action_name(const PhaseStep& step);

/// The `protocol` of the file, on one line.
std::string protocol_json(const Scenario& scenario);
/// What the header of its traces says of a scenario: its protocol, seed and save units.
std::string config_json(const std::string& protocol_json, const Scenario& scenario);

}  // namespace remat
