#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/protocol.hpp"
#include "sim/chooser.hpp"
#include "sim/collective_board.hpp"
#include "sim/engine.hpp"
#include "sim/rank_loop.hpp"
#include "sim/run_book.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What the ranks of a run have in common.
struct WorldOptions {
  RankOptions rank;
  std::optional<OffloadPolicy> offload;
  std::vector<RankGroup> groups;          // of collectives
  std::uint64_t phases_max = UINT64_MAX;  // of all ranks together, and no more
};

/// Ranks that train together, as events of one engine: each runs its order of phases, the one whose
/// clock is behind goes first, and where they meet, in a collective and at the end of a step, each
/// waits for the others. A rank alone runs a whole phase an event.
class World : private EventHandler {
 public:
  /// Plans and protocol must outlive it. Without a trace nothing is written.
  World(const std::vector<RankPlan>& plans, const Protocol& protocol, const WorldOptions& options,
        Trace* trace);
  ~World() override;

  void set_up();
  EventLog& log(std::size_t rank);
  RankLoop& loop(std::size_t rank);
  std::size_t n_ranks() const { return members_.size(); }

  /// What the rank spent on waits for others, in collectives and at the ends of steps.
  Duration waited(std::size_t rank) const;

  /// Runs every rank's order, up to an error that nobody catches.
  void run();
  bool was_cut_short() const { return was_cut_short_; }
  /// What a rank raised and nobody caught.
  const std::optional<SimulatedError>& error() const { return error_; }

 private:
  class Member;

  void handle(Engine& engine, const Event& event) override;
  void footprint(const Event& event, Footprint& footprint) const override;
  bool takes_a_phase();
  void stop(const SimulatedError& error);
  void end_step_of_all();
  bool ends_a_deadlock();

  std::uint64_t phases_max_;
  std::uint64_t n_phases_ = 0;
  RunBook book_;
  CollectiveBoard board_;
  ByOrder chooser_;
  Engine engine_;
  std::vector<std::unique_ptr<Member>> members_;  // by rank
  bool is_over_ = false;
  bool was_cut_short_ = false;
  std::optional<SimulatedError> error_;
};

}  // namespace remat
