#include "sim/pipeline_costs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "model/errors.hpp"
#include "model/json_place.hpp"

namespace remat {
namespace {

constexpr std::array<std::string_view, 6> keys = {"F", "B", "DX", "DW", "R", "COMM"};

/// Puts a cost where its key says.
void set_cost(std::string_view key, const WorkCost& cost, PipelineCosts& costs) {
  if (key == "F") costs.forward = cost;
  if (key == "B") costs.backward = cost;
  if (key == "DX") costs.dx = cost;
  if (key == "DW") costs.dw = cost;
  if (key == "R") costs.replay = cost;
}

std::optional<std::int64_t> cost_of(std::string_view text) {
  std::int64_t cost = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && cost >= 0 && cost <= cost_max ? std::optional(cost) : std::nullopt;
}

std::int64_t cost_at(const JsonPlace& place) {
  const std::int64_t cost = place.integer(0);
  if (cost > cost_max) place.fail("larger than " + std::to_string(cost_max) + "; expected less");
  return cost;
}

WorkCost read_cost(const JsonPlace& place) {
  if (!place.is_array()) return WorkCost(cost_at(place));
  std::vector<std::vector<std::int64_t>> by_stage;
  for (const JsonPlace& stage : place.items()) {
    std::vector<std::int64_t>& row = by_stage.emplace_back();
    if (!stage.is_array()) {
      row.push_back(cost_at(stage));
      continue;
    }
    for (const JsonPlace& microbatch : stage.items())
      row.push_back(cost_at(microbatch));
    if (row.empty()) stage.fail("no costs; expected one for each micro-batch");
  }
  if (by_stage.empty()) place.fail("no costs; expected one for each stage");
  return WorkCost(by_stage);
}

void require_enough(const char* key, const WorkCost& cost, const PipelineExtent& extent) {
  const auto stages = static_cast<std::size_t>(extent.stages);
  if (cost.n_stages() != 0 && cost.n_stages() < stages) {
    throw InputError("--costs: " + std::string(key) + " has " + std::to_string(cost.n_stages()) +
                     " stages; expected " + std::to_string(stages));
  }
  const auto microbatches = static_cast<std::size_t>(extent.microbatches);
  if (cost.n_microbatches().value_or(microbatches) < microbatches) {
    throw InputError("--costs: " + std::string(key) + " has a stage with " +
                     std::to_string(*cost.n_microbatches()) + " micro-batches; expected " +
                     std::to_string(microbatches));
  }
}

}  // namespace

std::int64_t WorkCost::of(const PipelineAction& action) const {
  if (by_stage_.empty()) return usual_;
  const std::vector<std::int64_t>& row = by_stage_[static_cast<std::size_t>(action.stage)];
  return row.size() == 1 ? row.front() : row[static_cast<std::size_t>(action.microbatch)];
}

std::optional<std::size_t> WorkCost::n_microbatches() const {
  std::optional<std::size_t> fewest;
  for (const std::vector<std::int64_t>& row : by_stage_) {
    if (row.size() > 1) fewest = std::min(fewest.value_or(row.size()), row.size());
  }
  return fewest;
}

std::int64_t PipelineCosts::of(const PipelineAction& action) const {
  switch (action.work) {
    case Work::forward:
      return forward.of(action);
    case Work::backward:
      return backward ? backward->of(action) : dx.of(action) + dw.of(action);
    case Work::dx:
      return dx.of(action);
    case Work::dw:
      return dw.of(action);
    case Work::replay:
      return replay ? replay->of(action) : forward.of(action);
    case Work::send_forward:
    case Work::recv_forward:
    case Work::send_backward:
    case Work::recv_backward:
    case Work::wait_send_forward:
    case Work::wait_send_backward:
    case Work::unshard:
    case Work::reshard:
    case Work::reduce_grad:
    case Work::wait_reduce_grad:
      break;
  }
  return 0;
}

void set_costs(const std::string& text, PipelineCosts& costs) {
  const std::string_view all = text;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    const std::string_view word = all.substr(begin, end - begin);
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals);
    const auto cost = cost_of(word.substr(std::min(equals + 1, word.size())));
    if (std::find(keys.begin(), keys.end(), key) == keys.end() || !cost) {
      throw InputError("--cost: '" + std::string(word) +
                       "' is no cost; expected F, B, DX, DW, R or COMM, '=' and a whole number up "
                       "to " +
                       std::to_string(cost_max));
    }
    if (key == "COMM") costs.latency = *cost;
    set_cost(key, WorkCost(*cost), costs);
    begin = end + 1;
  }
}

void read_costs(const std::string& file, const std::string& text, PipelineCosts& costs) {
  const JsonDocument document(file, text);
  const JsonPlace root(document);
  root.allow_only(keys);
  for (const std::string_view key : keys) {
    const auto place = root.find(key);
    if (!place) continue;
    if (key == "COMM") {
      costs.latency = cost_at(*place);
    } else {
      set_cost(key, read_cost(*place), costs);
    }
  }
}

void require_costs_for(const PipelineCosts& costs, const PipelineExtent& extent) {
  require_enough("F", costs.forward, extent);
  require_enough("DX", costs.dx, extent);
  require_enough("DW", costs.dw, extent);
  if (costs.backward) require_enough("B", *costs.backward, extent);
  if (costs.replay) require_enough("R", *costs.replay, extent);
}

}  // namespace remat
