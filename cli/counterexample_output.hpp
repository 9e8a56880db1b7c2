#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "properties/counterexample.hpp"

namespace remat {

/// What runs a case again: `rematsim fuzz --case R3.… --mutant M23`.
std::string again_command(const Counterexample& counterexample, const std::string& mutant);

/// The failure for a person: what holds no more, the program, the events that prove it, and the
/// line that runs it again.
std::string counterexample_text(const Counterexample& counterexample, const std::string& mutant,
                                bool colours);

/// Writes `NAME.scenario.json` and `NAME.jsonl` into the folder, which is made where it is not
/// there; the files' common path. Throws InputError.
std::string save_counterexample(const Counterexample& counterexample, const std::string& folder,
                                const std::string& mutant);

/// The same for scripts.
nlohmann::ordered_json counterexample_json(const Counterexample& counterexample,
                                           const std::string& mutant);

}  // namespace remat
