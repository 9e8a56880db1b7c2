#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "properties/counterexample.hpp"
#include "properties/mutants.hpp"

namespace remat {

/// What a campaign against a mutant came to.
struct MutantRun {
  std::uint64_t cases = 0;  // up to the one that named it
  std::optional<Counterexample> caught;
};

struct MutantRunOptions {
  std::uint64_t seed = 0;
  std::uint64_t cases_max = 100'000;
  unsigned jobs = 1;
  bool shrinks = true;
  std::function<bool()> is_over;
};

/// Runs cases with the fault planted until the invariant that is meant names it. A fault of
/// determinism is caught where two runs of the same cases differ.
MutantRun run_mutant(const Mutant& mutant, const MutantRunOptions& options);

}  // namespace remat
