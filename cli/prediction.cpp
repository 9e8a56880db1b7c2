#include "cli/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "sim/simulation.hpp"
#include "traces/rebuild/rebuild.hpp"

namespace remat {
namespace {

std::string protocol_of(const RebuiltRun& run) {
  if (!run.has_regions) return "none";
  if (run.selects_ops) return "torch-sac";
  return run.has_reentrant_regions ? "torch-reentrant" : "torch";
}

bool is_border(Kind kind) {
  return kind == Kind::phase_begin || kind == Kind::phase_end || kind == Kind::step_begin ||
         kind == Kind::step_end || kind == Kind::header;
}

/// The recording goes on after its forwards: there is something to compare with.
bool shows_backward(const Trace& recording) {
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const EventView event = recording[i];
    const Phase phase = event.phase();
    if (phase != Phase::setup && phase != Phase::forward && !is_border(event.kind())) return true;
    if (event.kind() == Kind::error) return true;
  }
  return false;
}

nlohmann::ordered_json side(const std::optional<std::string>& event) {
  return event ? nlohmann::ordered_json(*event) : nlohmann::ordered_json(nullptr);
}

std::string outcome(const Prediction& prediction) {
  if (prediction.unreadable) return "invalid";
  if (prediction.unsupported) return "unsupported";
  if (!prediction.match) return "predicted";
  return *prediction.match ? "as recorded" : "DIFFERS";
}

}  // namespace

Prediction predicted_from(const Trace& recording, Trace& simulated) {
  Prediction prediction;
  const RebuiltRun run = rebuild(recording);
  prediction.protocol = protocol_of(run);
  prediction.unsupported = run.unsupported;
  if (run.unsupported) return prediction;
  Simulation simulation;
  simulation.program = &run.program;
  simulation.order = &run.order;
  // A reentrant region says so itself: other regions may stand beside it.
  simulation.protocol = prediction.protocol == "torch-reentrant" ? "torch" : prediction.protocol;
  simulation.options.compat = Compat::torch;
  simulation.options.ambient_hooks = run.has_ambient_hooks;
  simulation.config_json =
      fmt::format(R"({{"protocol":"{}","compat":"torch"}})", prediction.protocol);
  simulate(simulation, simulated);
  prediction.predicted = comparable_events(simulated);
  if (!shows_backward(recording)) return prediction;
  prediction.difference = first_difference(prediction.predicted, comparable_events(recording));
  prediction.match = !prediction.difference;
  return prediction;
}

std::string prediction_json(const std::vector<Prediction>& predictions, bool list) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::int64_t matched = 0;
  std::int64_t mismatched = 0;
  std::int64_t unsupported = 0;
  for (const Prediction& prediction : predictions) {
    nlohmann::ordered_json file;
    file["file"] = prediction.file;
    file["protocol"] = prediction.protocol;
    if (list) file["predicted"] = prediction.predicted;
    file["match"] = prediction.match ? nlohmann::ordered_json(*prediction.match) : nullptr;
    file["first_difference"] = nullptr;
    if (prediction.difference) {
      file["first_difference"] = {{"index", prediction.difference->index},
                                  {"predicted", side(prediction.difference->predicted)},
                                  {"recorded", side(prediction.difference->recorded)}};
    }
    const auto& why = prediction.unreadable ? prediction.unreadable : prediction.unsupported;
    file["unsupported"] = side(why);
    if (prediction.unreadable) file["verdict"] = "invalid";
    files.push_back(std::move(file));
    matched += prediction.match == true ? 1 : 0;
    mismatched += prediction.match == false ? 1 : 0;
    unsupported += prediction.unsupported ? 1 : 0;
  }
  const nlohmann::ordered_json all = {{"version", 1},
                                      {"files", files},
                                      {"matched", matched},
                                      {"mismatched", mismatched},
                                      {"unsupported", unsupported}};
  return all.dump(2) + "\n";
}

std::string prediction_text(const std::vector<Prediction>& predictions, bool list, bool colours) {
  std::size_t columns = 0;
  for (const Prediction& prediction : predictions)
    columns = std::max(columns, width(prediction.file));
  std::string text = padded("recording", columns) + "  protocol         events  outcome\n";
  for (const Prediction& prediction : predictions) {
    const bool is_bad = prediction.match == false || prediction.unreadable;
    const Colour colour = is_bad                   ? Colour::red
                          : prediction.unsupported ? Colour::yellow
                                                   : Colour::green;
    text +=
        fmt::format("{}  {:<15} {:>7}  {}\n", padded(prediction.file, columns), prediction.protocol,
                    prediction.predicted.size(), painted(outcome(prediction), colour, colours));
    if (list)
      for (const std::string& event : prediction.predicted)
        text += "  " + event + "\n";
  }
  for (const Prediction& prediction : predictions) {
    if (prediction.unsupported)
      text += fmt::format("{}: not predicted: {}\n", prediction.file, *prediction.unsupported);
    if (!prediction.difference) continue;
    const FirstDifference& at = *prediction.difference;
    text +=
        fmt::format("{}: event {}: predicted {}, recorded {}\n", prediction.file, at.index,
                    at.predicted.value_or("nothing more"), at.recorded.value_or("nothing more"));
  }
  const auto n = [&](auto holds) {
    return std::count_if(predictions.begin(), predictions.end(), holds);
  };
  text += fmt::format(
      "{} recordings: {} as recorded, {} differ, {} not predicted, {} without a backward to "
      "compare "
      "with.\n",
      predictions.size(), n([](const Prediction& p) { return p.match == true; }),
      n([](const Prediction& p) { return p.match == false; }),
      n([](const Prediction& p) { return p.unsupported || p.unreadable; }),
      n([](const Prediction& p) { return !p.match && !p.unsupported && !p.unreadable; }));
  return text;
}

}  // namespace remat
