#include "cli/schema_command.hpp"

#include <fmt/format.h>

#include "model/errors.hpp"
#include "sim/scenario.hpp"
#include "traces/json_schema.hpp"
#include "traces/output_file.hpp"

namespace remat {

ExitCode schema_command(const SchemaOptions& options) {
  if (options.name != "trace" && options.name != "scenario") {
    throw InputError(
        fmt::format("there is no schema '{}'; expected one of trace, scenario", options.name));
  }
  OutputFile file(options.output);
  file.write((options.name == "trace" ? trace_json_schema() : scenario_schema()) + "\n");
  file.commit();
  return ExitCode::fine;
}

}  // namespace remat
