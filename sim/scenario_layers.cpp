#include "sim/scenario_layers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace remat {
namespace {

using Json = nlohmann::json;

/// "one of '' (regions without an owner), 'tower'"
std::string shown(const std::map<std::string, std::size_t>& models) {
  if (models.empty()) return "none, as the program has no checkpointed region";
  std::string text;
  for (const auto& [owner, n_layers] : models) {
    text += text.empty() ? "one of '" : ", '";
    text += owner + (owner.empty() ? "' (regions without an owner)" : "'");
  }
  return text;
}

void check_models_of(const JsonPlace& by_owner, const Scenario& scenario) {
  const std::map<std::string, std::size_t> models = layers_of_models(scenario);
  for (const std::string& owner : by_owner.keys()) {
    if (models.count(owner) != 0) continue;
    by_owner.at(owner).fail("no checkpointed region is a layer of a model '" + owner +
                            "'; expected " + shown(models));
  }
}

}  // namespace

RecomputeRatio ratio_from(const JsonPlace& place) {
  RecomputeRatio ratio;
  if (!place.is_object()) {
    ratio.of_models = place.fraction();
    return ratio;
  }
  for (const std::string& owner : place.keys())
    ratio.of_model[owner] = place.at(owner).fraction();
  return ratio;
}

Json written_ratio(const RecomputeRatio& ratio) {
  if (!ratio.of_model.empty()) return Json(ratio.of_model);
  return ratio.of_models == 1 ? Json() : Json(ratio.of_models);
}

std::map<std::string, std::size_t> layers_of_models(const Scenario& scenario) {
  std::map<std::string, std::size_t> models = layers_of_models(scenario.program);
  for (const Program& program : scenario.other_programs) {
    for (const auto& [owner, n_layers] : layers_of_models(program))
      models[owner] = std::max(models[owner], n_layers);
  }
  return models;
}

void check_models(const JsonPlace& protocol, const Scenario& scenario) {
  const auto ratio = protocol.find("recompute_ratio");
  if (ratio && ratio->is_object()) check_models_of(*ratio, scenario);
  if (const auto selections = protocol.find("sub_models")) check_models_of(*selections, scenario);
}

}  // namespace remat
