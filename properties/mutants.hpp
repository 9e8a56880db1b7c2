#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "properties/case_runner.hpp"

namespace remat {

/// A fault that is planted to see whether the invariants name it: of the zoo of protocols.md §4.2
/// (M and its number), or of the engine and its tape (X).
struct Mutant {
  std::string_view name;       // "M23 key-by-frame-only"
  std::string_view protocol;   // whose cases are run; empty: all
  std::string_view caught_by;  // the invariant that must name it, or `error:CODE`
  std::string_view change;     // what it does
  PlantedFault fault;
};

/// All of them, in the order in which they are listed.
std::span<const Mutant> mutants();
/// By the whole name or its first word; none where there is no such.
const Mutant* mutant_named(std::string_view name);
/// What it plants; nothing where there is no mutant.
inline PlantedFault fault_of(const Mutant* mutant) {
  PlantedFault fault;
  if (mutant == nullptr) return fault;
  fault = mutant->fault;
  fault.meant = mutant->caught_by;
  return fault;
}

}  // namespace remat
