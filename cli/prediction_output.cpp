#include "cli/prediction_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"

namespace remat {
namespace {

nlohmann::ordered_json side(const std::optional<std::string>& event) {
  return event ? nlohmann::ordered_json(*event) : nlohmann::ordered_json(nullptr);
}

std::string outcome(const PredictedFile& prediction) {
  if (prediction.unreadable) return "invalid";
  if (prediction.unsupported) return "unsupported";
  if (!prediction.match) return "predicted";
  return *prediction.match ? "as recorded" : "DIFFERS";
}

}  // namespace

std::string prediction_json(const std::vector<PredictedFile>& predictions, bool list) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::int64_t matched = 0;
  std::int64_t mismatched = 0;
  std::int64_t unsupported = 0;
  for (const PredictedFile& prediction : predictions) {
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
    if (prediction.not_compared) file["not_compared"] = *prediction.not_compared;
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

std::string prediction_text(const std::vector<PredictedFile>& predictions, bool list,
                            bool colours) {
  std::size_t columns = 0;
  for (const PredictedFile& prediction : predictions)
    columns = std::max(columns, width(prediction.file));
  std::string text = padded("recording", columns) + "  protocol         events  outcome\n";
  for (const PredictedFile& prediction : predictions) {
    const bool is_bad = prediction.match == false || prediction.unreadable;
    const Colour colour = is_bad                   ? Colour::red
                          : prediction.unsupported ? Colour::yellow
                                                   : Colour::green;
    text +=
        fmt::format("{}  {:<15} {:>7}  {}\n", padded(prediction.file, columns), prediction.protocol,
                    prediction.predicted.size(), painted(outcome(prediction), colour, colours));
    if (list) {
      for (const std::string& event : prediction.predicted)
        text += "  " + event + "\n";
    }
  }
  for (const PredictedFile& prediction : predictions) {
    if (prediction.unsupported)
      text += fmt::format("{}: not predicted: {}\n", prediction.file, *prediction.unsupported);
    if (prediction.not_compared)
      text += fmt::format("{}: not compared: {}\n", prediction.file, *prediction.not_compared);
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
      predictions.size(), n([](const PredictedFile& p) { return p.match == true; }),
      n([](const PredictedFile& p) { return p.match == false; }),
      n([](const PredictedFile& p) { return p.unsupported || p.unreadable; }),
      n([](const PredictedFile& p) { return !p.match && !p.unsupported && !p.unreadable; }));
  return text;
}

}  // namespace remat
