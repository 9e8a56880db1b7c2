#include "cli/asked_mutant.hpp"

#include "model/errors.hpp"
#include "model/listed.hpp"

namespace remat {

const Mutant* asked_mutant(const std::string& name) {
  if (name.empty()) return nullptr;
  const Mutant* mutant = mutant_named(name);
  if (mutant != nullptr) return mutant;
  const auto number = [](const Mutant& row) { return row.name.substr(0, row.name.find(' ')); };
  throw InputError("unknown mutant '" + name + "'; expected one of " + listed(mutants(), number));
}

}  // namespace remat
