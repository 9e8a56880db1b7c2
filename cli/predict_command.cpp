#include "cli/predict_command.hpp"

#include "cli/console.hpp"
#include "cli/prediction_output.hpp"
#include "model/errors.hpp"
#include "traces/output_file.hpp"
#include "traces/reader.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

PredictedFile predicted_file(const std::string& path, Trace& simulated) {
  PredictedFile prediction;
  try {
    static_cast<Prediction&>(prediction) = predicted_from(read_trace(path), simulated);
  } catch (const InputError& error) {
    prediction.unreadable = error.what();
  }
  prediction.file = path;
  return prediction;
}

ExitCode exit_code(const PredictedFile& prediction) {
  if (prediction.unreadable) return ExitCode::bad_input;
  return prediction.match == false ? ExitCode::found : ExitCode::fine;
}

}  // namespace

ExitCode predict_command(const PredictOptions& options) {
  if (options.traces.empty())
    throw InputError("no trace is named; expected one or more files (- is standard input)");
  if (!options.trace.empty() && options.traces.size() != 1)
    throw InputError("--trace writes the trace of one prediction; expected one recording");
  std::vector<PredictedFile> predictions;
  ExitCode code = ExitCode::fine;
  for (const std::string& path : options.traces) {
    Trace simulated;
    predictions.push_back(predicted_file(path, simulated));
    code = worse(code, exit_code(predictions.back()));
    if (options.trace.empty() || predictions.back().unreadable) continue;
    // Without a prediction there is no trace to write; the output says why.
    if (!predictions.back().unsupported) write_trace(simulated, options.trace);
  }
  const bool nothing_to_show = predictions.size() == 1 && predictions.front().unreadable;
  if (options.json || !nothing_to_show) {
    OutputFile file(options.output);
    file.write(options.json ? prediction_json(predictions, options.list)
                            : prediction_text(predictions, options.list,
                                              options.output == "-" && output_has_colours()));
    file.commit();
  }
  for (const PredictedFile& prediction : predictions)
    if (prediction.unreadable) print_error(*prediction.unreadable);
  return code;
}

}  // namespace remat
