#include "sim/scenario_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/errors.hpp"
#include "model/program_writer.hpp"
#include "schedules/action_list.hpp"
#include "sim/scenario_layers.hpp"
#include "sim/scenario_offload.hpp"
#include "sim/scenario_units.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

ActionKind action_kind(PhaseStep::Kind kind) {
  switch (kind) {
    case PhaseStep::Kind::forward:
      return ActionKind::forward;
    case PhaseStep::Kind::backward:
      return ActionKind::backward;
    case PhaseStep::Kind::dx:
      return ActionKind::dx;
    case PhaseStep::Kind::dw:
      return ActionKind::dw;
    case PhaseStep::Kind::zero_grad:
      return ActionKind::zero_grad;
    case PhaseStep::Kind::update:
    case PhaseStep::Kind::step_begin:
    case PhaseStep::Kind::step_end:
    case PhaseStep::Kind::session_open:
    case PhaseStep::Kind::session_close:
    case PhaseStep::Kind::session_clear:
    case PhaseStep::Kind::prefire:
      break;
  }
  return ActionKind::update;
}

Json written_action(const PhaseStep& step, const Program& program) {
  const std::string name = action_name(step);
  if (!step.retain && !step.group && step.wrt.empty() && !step.catches) return name;
  Json json = {{"action", name}};
  if (step.retain) json["retain"] = true;
  if (step.group) json["group"] = *step.group;
  for (const ValueId leaf : step.wrt)
    json["wrt"].push_back(program.values[leaf].name);
  if (step.catches) json["catch"] = true;
  return json;
}

Json written_schedule(const Scenario& scenario, std::int64_t& n_steps) {
  std::int64_t n_microbatches = 1;
  Json lists = Json::array();
  for (const PhaseStep& step : scenario.order) {
    switch (step.kind) {
      case PhaseStep::Kind::step_begin:
        ++n_steps;
        lists.push_back(Json::array());
        break;
      case PhaseStep::Kind::step_end:
        break;
      default:
        n_microbatches = std::max(n_microbatches, step.microbatch.value_or(0) + 1);
        REMAT_INVARIANT(!lists.empty());
        lists.back().push_back(written_action(step, scenario.program));
    }
  }
  return {{"microbatches", n_microbatches}, {"actions", lists}};
}

/// A flag is written where it is not what it is without being told.
void write_flag(nlohmann::json& json, const char* key, bool value, bool otherwise) {
  if (value != otherwise) json[key] = value;
}

nlohmann::json protocol_object(const Scenario& scenario) {
  const ProtocolOptions& options = scenario.options;
  nlohmann::json json = {{"name", scenario.protocol}};  // keys in alphabetical order
  write_flag(json, "allow_cache_entry_mutation", options.allow_cache_entry_mutation, false);
  write_flag(json, "ambient_hooks", options.ambient_hooks, false);
  if (takes_boundaries(scenario.protocol) && options.boundaries != BoundaryPasses::both)
    json["boundaries"] = options.boundaries == BoundaryPasses::forward ? "forward" : "none";
  if (options.compat == Compat::torch) json["compat"] = "torch";
  if (options.compat == Compat::public_code) json["compat"] = "public";
  write_flag(json, "determinism_check", options.determinism_check, true);
  if (!scenario.rank.dw_task_per_group) json["dw_tasks"] = "one";
  write_flag(json, "early_stop", options.early_stop, true);
  if (options.keep_collectives) json["keep_collectives"] = *options.keep_collectives;
  if (options.keep_every != 0) json["keep_every"] = options.keep_every;
  if (options.offload) json["offload"] = written_offload(*options.offload);
  write_flag(json, "preserve_rng", scenario.rank.preserves_rng, true);
  const nlohmann::json ratio = written_ratio(options.recompute_ratio);
  if (!ratio.is_null()) json["recompute_ratio"] = ratio;
  if (options.state_hooks) json["state_hooks"] = *options.state_hooks;
  write_units(scenario, json);
  return json;
}

/// Groups beside that of all ranks, which is the first.
void write_groups(const Program& program, Json& json) {
  for (std::size_t i = 1; i < program.groups.size(); ++i)
    json["groups"][program.groups[i].name] = program.groups[i].ranks;
}

}  // namespace

std::string action_name(const PhaseStep& step) {
  return name_of(Action{.kind = action_kind(step.kind), .microbatch = step.microbatch.value_or(0)});
}

std::string protocol_json(const Scenario& scenario) {
  return protocol_object(scenario).dump();
}

std::string config_json(const std::string& protocol_json, const Scenario& scenario) {
  const std::string units = units_json(scenario);
  return fmt::format(R"({{"protocol":{},"seed":{}{}{}}})", protocol_json, scenario.rank.seed,
                     units.empty() ? "" : ",\"units\":", units);
}

std::string scenario_json(const Scenario& scenario, const ScenarioRemarks& remarks) {
  Json json = {{"format", "rematsim-scenario"}, {"version", 1}};
  if (!remarks.about.empty()) json["about"] = remarks.about;
  if (!remarks.fuzz_case.empty()) json["case"] = remarks.fuzz_case;
  REMAT_INVARIANT(scenario.other_programs.empty());  // what is written is every rank's
  if (scenario.n_ranks > 1) json["ranks"] = scenario.n_ranks;
  write_groups(scenario.program, json);
  json["program"] = program_json(scenario.program);
  json["protocol"] = protocol_object(scenario);
  std::int64_t n_steps = 0;
  json["schedule"] = written_schedule(scenario, n_steps);
  if (scenario.memory_bytes > 0) json["machine"]["memory_bytes"] = scenario.memory_bytes;
  const nlohmann::json links = written_links(scenario.rank.links);
  if (!links.empty()) json["machine"]["links"] = links;
  json["steps"] = n_steps;
  json["seed"] = scenario.rank.seed;
  return json.dump(1) + "\n";
}

}  // namespace remat
