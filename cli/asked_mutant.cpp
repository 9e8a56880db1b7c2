#include "cli/asked_mutant.hpp"

#include "model/errors.hpp"

namespace remat {

const Mutant* asked_mutant(const std::string& name) {
  if (name.empty()) return nullptr;
  const Mutant* mutant = mutant_named(name);
  if (mutant != nullptr) return mutant;
  std::string known;
  for (const Mutant& row : mutants())
    known += (known.empty() ? "" : ", ") + std::string(row.name.substr(0, row.name.find(' ')));
  throw InputError("unknown mutant '" + name + "'; expected one of " + known);
}

}  // namespace remat
