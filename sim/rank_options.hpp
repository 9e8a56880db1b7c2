#pragma once

#include <cstdint>

#include "model/memory_levels.hpp"
#include "sim/rank_fault.hpp"

namespace remat {

/// What a rank is told beside its program and its protocol.
struct RankOptions {
  std::uint64_t seed = 0;
  bool preserves_rng = true;
  /// A dw half runs one graph task a group of parameters, as torch does, not one for all.
  bool dw_task_per_group = true;
  /// A group's task stays below the nodes that dx ran: a tied parameter, whose meeting points feed
  /// one another, gets each gradient once. torch walks on and counts it twice.
  bool dw_counts_once = true;
  /// Each micro-batch has input tensors of its own; otherwise all share what the program names.
  bool inputs_per_microbatch = false;
  /// From an output without dimensions, a loss, a dw half is one graph task.
  bool loss_has_dw_at_once = false;
  /// A replay follows the shapes of placeholders through the ops that read them.
  bool carries_shapes = false;
  /// What the program's hooks raise is raised. Otherwise only by pack hooks, in phases whose caller
  /// catches it: those of a run that is made again without its checkpoints.
  bool raises_in_hooks = true;
  /// Between the device and each level that offloaded bytes wait on.
  LinkRates links = {};
  RankFault fault = RankFault::none;
};

}  // namespace remat
