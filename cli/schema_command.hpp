#pragma once

#include <string>

#include "cli/exit_code.hpp"

namespace remat {

/// `rematsim schema`.
struct SchemaOptions {
  std::string name;
  std::string output = "-";
};

/// Prints a JSON Schema. Throws InputError for a name that has none.
ExitCode schema_command(const SchemaOptions& options);

}  // namespace remat
