#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

#include "properties/mutants.hpp"
#include "tests/sanitizers.hpp"

namespace remat {

/// The mutants that random programs can meet. A search for all of them takes a sanitizer's build
/// twenty minutes and shows it the same code again and again: such a build searches for some.
inline std::vector<Mutant> searched_mutants() {
  if (built_with_sanitizers) WARN("built with sanitizers: one mutant in eight is searched for");
  std::vector<Mutant> found;
  for (std::size_t at = 0; at < mutants().size(); at += built_with_sanitizers ? 8 : 1)
    if (mutants()[at].caught_by != "selfcheck") found.push_back(mutants()[at]);
  return found;
}

}  // namespace remat
