#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/program.hpp"

namespace remat {

struct ReferenceRules;

/// What a program of one forward says.
inline const std::vector<Statement>& statements_of(const Program& program) {
  return program.forwards.front().statements;
}

/// The statement raises in this run of the code.
inline bool raises_in(const Raise& raise, bool is_replay) {
  if (raise.is_a_hooks()) return false;  // an op does, if anything
  return raise.runs == Raise::Runs::always || (raise.runs == Raise::Runs::replay) == is_replay;
}

/// A call of an excluded region in forward, as protocols.md P3 to P6 have it, or of a saved region
/// of torch_remat (P7); there, also a call of a checkpointed region, for its boundaries.
struct ReferenceWrapper {
  std::size_t frame = 0;                     // the begin of the checkpointed region around it
  bool raises = false;                       // its body does: no entry, and a replay raises too
  std::size_t n_slots = 0;                   // saved inputs that are not kept
  std::vector<bool> has_boundary;            // by output leaf
  std::vector<std::vector<ValueId>> leaves;  // each output leaf alone
  std::vector<bool> is_kept;                 // by output leaf: for the replay
};

/// Which calls a program has, and which of what their bodies save is brought by a replay: read off
/// the statements of a legal program alone.
class ReferenceWrappers {
 public:
  ReferenceWrappers(const Program& program, const ReferenceRules& rules);

  /// The call that begins at the statement; none where the body is code like any other.
  const ReferenceWrapper* at(std::size_t statement) const {
    const auto found = calls_.find(statement);
    return found == calls_.end() ? nullptr : &found->second;
  }
  /// The op's save waits for a replay.
  bool is_slot(std::size_t statement, std::size_t save) const {
    return slots_.count({statement, save}) != 0;
  }

 private:
  friend class WrapperWalk;
  std::map<std::size_t, ReferenceWrapper> calls_;
  std::set<std::pair<std::size_t, std::size_t>> slots_;  // statement, place among its saves
};

}  // namespace remat
