#pragma once

#include <optional>
#include <string>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A recorded run as a program: what its forwards do, and the order of its phases.
struct RebuiltRun {
  Program program;
  PhaseOrder order;
  bool has_ambient_hooks = false;  // saved-tensor hooks of the recorder turned version checks off
  bool has_regions = false;        // checkpointed ones
  bool has_reentrant_regions = false;
  bool selects_ops = false;        // a selective policy decided for each op
  bool has_wrappers = false;       // excluded regions inside checkpointed ones
  bool has_remat_regions = false;  // of torch_remat
  bool has_state_hooks = false;    // … which keep the generator in step
  bool knows_sessions = false;     // some region's frames may be replayed by recompute sessions
  /// Why a prediction from this recording would be a guess; none where it is not.
  std::optional<std::string> unsupported;
};

/// Makes a program of a recording: out of its header, setup, forwards and the borders of later
/// phases alone, so a recording cut down to those gives the same. Which op a saved tensor belongs
/// to follows rule R3 of observed-torch.md §8.
RebuiltRun rebuild(const Trace& trace);

}  // namespace remat
