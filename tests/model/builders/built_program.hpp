#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/sim/scenario_run.hpp"

namespace remat {

using Json = nlohmann::ordered_json;

/// Element bytes of bf16; what a loss of that type takes.
inline constexpr std::int64_t bf16_bytes = 2;

/// The scenario of a program, with more keys of its own where told.
inline std::string text_of(const Json& program, const Json& protocol = {{"name", "none"}},
                           const Json& more = Json::object()) {
  Json scenario = {{"format", "rematsim-scenario"}, {"version", 1}};
  scenario["program"] = program;
  scenario["protocol"] = protocol;
  scenario.update(more);
  return scenario.dump();
}

inline ScenarioRun run_program(const Json& program, const std::string& protocol = "none") {
  return run_text(text_of(program, {{"name", protocol}}));
}

/// The program with other values under some keys.
inline Json changed(Json program, const Json& keys) {
  program.update(keys);
  return program;
}

/// What a run of it keeps for backward, the loss left out.
inline std::int64_t kept_bytes(const Json& program, const std::string& protocol = "none") {
  return run_program(program, protocol).result.resident_bytes - bf16_bytes;
}

}  // namespace remat
