#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "schedules/registry.hpp"
#include "sim/rank.hpp"

namespace remat {

/// Everything that one simulation depends on: program, protocol, schedule, machine, steps, seed.
struct Scenario {
  std::uint32_t n_ranks = 1;
  Program program;                      // of every rank …
  std::vector<Program> other_programs;  // … but those behind the first, where they have their own
  PhaseOrder order;
  std::string protocol = "none";
  ProtocolOptions options;
  RankOptions rank;
  /// Bytes of the device; none: not bounded.
  std::int64_t memory_bytes = 0;
  std::string config_json = "{}";  // what the trace's header says of it

  const Program& program_of(std::uint32_t number) const {
    return number == 0 || other_programs.empty() ? program : other_programs[number - 1];
  }
};

/// Reads a `rematsim-scenario` (docs/cli.md). `file` is what messages call it. Throws InputError
/// that names line and pointer.
Scenario parse_scenario(const std::string& file, const std::string& text);
/// Likewise, from a file; `-` is standard input.
Scenario read_scenario(const std::string& path);

/// The JSON Schema of a scenario.
std::string scenario_schema();

}  // namespace remat
