#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// One thing that a training loop does with its program.
struct PhaseStep {
  enum class Kind : std::uint8_t {
    step_begin,
    forward,
    backward,
    dx,
    dw,
    update,
    step_end,
    session_open,   // a recompute session is in scope …
    session_close,  // … and no more
    session_clear,  // what a session's replays brought goes, and the frames that it knew
    prefire,        // frames are replayed for the session in scope, before a backward asks
    zero_grad       // every gradient goes
  } kind = Kind::forward;
  std::size_t forward = 0;  // of a forward: which one of the program
  std::optional<std::int64_t> microbatch = std::nullopt;
  bool retain = false;                               // a backward keeps its graph
  std::optional<std::int64_t> group = std::nullopt;  // exec group under which a backward runs
  // Leaves that a backward asks the gradients of; empty: all that there are.
  std::vector<ValueId> wrt = {};
  std::optional<ValueId> root = std::nullopt;  // of a backward, where it is not the forward's own
  std::string session = {};  // of session_open, session_close and session_clear: its name
  std::vector<std::int64_t> frames = {};  // of a prefire, in order: their numbers
  // Of an update: what it writes; none: every parameter that has a gradient.
  std::optional<std::vector<ValueId>> writes = std::nullopt;
  bool catches = false;  // the loop goes on after what it raises
};

/// What a training loop does, in order: all steps of it.
using PhaseOrder = std::vector<PhaseStep>;

}  // namespace remat
