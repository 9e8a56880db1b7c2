#include "properties/reference_layers.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "properties/reference_wrappers.hpp"

namespace remat {
namespace {

/// A model's layers by their names, in the order in which they come, and the regions of each.
struct Model {
  std::vector<std::string> layers;
  std::map<std::string, std::vector<std::size_t>> ends;

  void add(const std::string& layer, std::size_t end) {
    if (std::count(layers.begin(), layers.end(), layer) == 0) layers.push_back(layer);
    ends[layer].push_back(end);
  }
};

/// Goes into each region with the layers that it lies in: model → layer.
void find_layers(const std::vector<Statement>& statements, std::size_t begin, std::size_t end,
                 const std::map<std::string, std::string>& around,
                 std::map<std::string, Model>& models) {
  for (std::size_t at = begin; at < end; ++at) {
    const auto* region = std::get_if<RegionBegin>(&statements[at]);
    if (region == nullptr || region->kind != RegionKind::checkpointed) continue;
    auto inside = around;
    const std::string layer = inside.try_emplace(region->owner, region->name).first->second;
    models[region->owner].add(layer, region->end);
    find_layers(statements, at + 1, region->end, inside, models);
    at = region->end;
  }
}

}  // namespace

std::set<std::size_t> reference_plain_layers(const Scenario& scenario, const Program& program) {
  const std::vector<Statement>& statements = statements_of(program);
  std::map<std::string, Model> models;
  find_layers(statements, 0, statements.size(), {}, models);
  std::set<std::size_t> plain;
  for (const auto& [owner, model] : models) {
    const RecomputeRatio& given = scenario.options.recompute_ratio;
    const auto own = given.of_model.find(owner);
    const double part = own != given.of_model.end() ? own->second : given.of_models;
    const double n_checkpointed = part * static_cast<double>(model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (static_cast<double>(i + 1) <= n_checkpointed) continue;
      const std::vector<std::size_t>& ends = model.ends.at(model.layers[i]);
      plain.insert(ends.begin(), ends.end());
    }
  }
  return plain;
}

}  // namespace remat
