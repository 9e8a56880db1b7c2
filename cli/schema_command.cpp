#include "cli/schema_command.hpp"

#include <fmt/format.h>

#include "model/errors.hpp"
#include "traces/json_schema.hpp"
#include "traces/output_file.hpp"

namespace remat {

ExitCode schema_command(const SchemaOptions& options) {
  if (options.name != "trace")
    throw InputError(fmt::format("there is no schema '{}'; expected one of trace", options.name));
  OutputFile file(options.output);
  file.write(trace_json_schema() + "\n");
  file.commit();
  return ExitCode::fine;
}

}  // namespace remat
