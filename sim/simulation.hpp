#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "schedules/registry.hpp"
#include "sim/expectation.hpp"
#include "sim/rank.hpp"
#include "sim/scenario.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A program, what the training loop does with it, and the protocol that it is run under.
struct Simulation {
  const Program* program = nullptr;
  const PhaseOrder* order = nullptr;
  std::string protocol = "none";
  ProtocolOptions options;
  RankOptions rank;
  std::string config_json = "{}";  // of the trace's header
  Expectation expectation;         // likewise, beside the plain run's gradients
  /// So many events of the engine, each one phase of a rank, and no more.
  std::uint64_t events_max = UINT64_MAX;
};

/// What a phase raised and the training loop caught.
struct CaughtError {
  std::size_t phase = 0;  // its place in the order
  SimulatedError error;
};

struct SimulationResult {
  std::optional<SimulatedError> error;  // that nobody caught: the run ends there
  std::int64_t error_seq = 0;
  std::vector<CaughtError> caught;
  bool was_cut_short = false;  // by events_max
  Instant end;
  BytesByClass at_peak;
  /// Alive at the end of the last forward phase that was not caught raising.
  std::int64_t resident_bytes = 0;
  BytesByClass resident;                          // the same, by owner class
  std::vector<std::int64_t> resident_by_forward;  // at the end of each forward phase
  std::int64_t replay_peak_bytes = 0;
  /// The most that replays brought to excluded regions' slots and that lay there at one time.
  std::int64_t rederived_bytes = 0;
  std::int64_t hook_calls = 0;
  BytesByLevel offloaded{};                 // what waited elsewhere than on the device
  Duration copies_waited;                   // by the compute stream
  std::vector<Contribution> contributions;  // gradients in the order in which they reached leaves
  std::vector<std::size_t> contributions_by_step;  // how many there were at the end of each step
  /// The gradients are those of the run that checkpoints nothing; none where that one fails.
  std::optional<bool> gradients_match;
};

/// Runs it, and first the same program under no protocol, whose gradients are the reference. The
/// trace gets the reference in its header's `expect`.
SimulationResult simulate(const Simulation& simulation, Trace& trace);
/// The same under a protocol that the caller made, whatever name the simulation has: one that the
/// registry does not list.
SimulationResult simulate(const Simulation& simulation, const Protocol& protocol, Trace& trace);

/// Looks at the rank, once a phase is over.
using AfterPhase = std::function<void(const Rank& rank, const PhaseStep& phase)>;

/// Runs the order so many times over, one after the other, and keeps nothing of what is over: no
/// trace, no gradients. After each phase the caller may look at the rank. All runs together have
/// the simulation's `events_max` phases and no more. Returns the error that it was stopped by.
std::optional<SimulatedError> run_over_and_over(const Simulation& simulation, std::int64_t times,
                                                const AfterPhase& after_phase);

/// What a scenario asks to be run. The scenario must outlive it.
Simulation simulation_of(const Scenario& scenario);
/// The peak stays within the scenario's memory, where that is bounded.
bool fits_memory(const Scenario& scenario, const SimulationResult& result);

}  // namespace remat
