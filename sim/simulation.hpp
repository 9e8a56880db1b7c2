#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "schedules/registry.hpp"
#include "sim/expectation.hpp"
#include "sim/rank.hpp"
#include "sim/rank_loop.hpp"
#include "sim/scenario.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What the ranks of a run do, and the protocol that they are run under.
struct Simulation {
  std::vector<RankPlan> ranks;
  std::vector<RankGroup> groups;  // of their collectives
  std::string protocol = "none";
  ProtocolOptions options;
  RankOptions rank;                // of each; the seed is the first one's
  std::string config_json = "{}";  // of the trace's header
  Expectation expectation;         // likewise, beside the plain run's gradients
  /// So many phases of all ranks together, and no more.
  std::uint64_t events_max = UINT64_MAX;
};

struct SimulationResult : RankUse {
  std::optional<SimulatedError> error;  // that nobody caught: the run ends there
  std::int64_t error_seq = 0;
  std::vector<CaughtError> caught;
  bool was_cut_short = false;               // by events_max
  std::vector<RankUse> ranks;               // each of several; of one, what is told above
  std::vector<Contribution> contributions;  // gradients in the order in which they reached leaves,
                                            // step by step, each rank's after the other's
  std::vector<std::size_t> contributions_by_step;  // how many there were at the end of each step
  /// The gradients are those of the run that checkpoints nothing; none where that one fails, or
  /// where one of the two is cut short.
  std::optional<bool> gradients_match;
  std::optional<SimulatedError> plain_error;  // what that run fails in
};

/// Runs it, and first the same program under no protocol, whose gradients are the reference. The
/// trace gets the reference in its header's `expect`.
SimulationResult simulate(const Simulation& simulation, Trace& trace);
/// The same under a protocol that the caller made, whatever name the simulation has: one that the
/// registry does not list.
SimulationResult simulate(const Simulation& simulation, const Protocol& protocol, Trace& trace);

/// Runs the order so many times over, one after the other, and keeps nothing of what is over: no
/// trace, no gradients; of one rank. After each phase the caller may look at the rank. All runs
/// together have the simulation's `events_max` phases and no more. Returns the error that it was
/// stopped by.
std::optional<SimulatedError> run_over_and_over(const Simulation& simulation, std::int64_t times,
                                                const AfterPhase& after_phase);

/// What a scenario asks to be run. The scenario must outlive it.
Simulation simulation_of(const Scenario& scenario);
/// The peak stays within the scenario's memory, where that is bounded.
bool fits_memory(const Scenario& scenario, const SimulationResult& result);

}  // namespace remat
