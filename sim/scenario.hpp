#pragma once

#include <cstdint>
#include <string>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "schedules/registry.hpp"
#include "sim/rank.hpp"

namespace remat {

/// Everything that one simulation depends on: program, protocol, schedule, machine, steps, seed.
struct Scenario {
  Program program;
  PhaseOrder order;
  std::string protocol = "none";
  ProtocolOptions options;
  RankOptions rank;
  /// Bytes of the device; none: not bounded.
  std::int64_t memory_bytes = 0;
  std::string config_json = "{}";  // what the trace's header says of it
};

/// Reads a `rematsim-scenario` (docs/cli.md). `file` is what messages call it. Throws InputError
/// that names line and pointer.
Scenario parse_scenario(const std::string& file, const std::string& text);
/// Likewise, from a file; `-` is standard input.
Scenario read_scenario(const std::string& path);

/// The JSON Schema of a scenario.
std::string scenario_schema();

}  // namespace remat
