#include "sim/scenario.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "model/errors.hpp"
#include "model/json_place.hpp"
#include "model/program_json.hpp"
#include "schedules/action_list.hpp"
#include "sim/scenario_layers.hpp"
#include "sim/scenario_offload.hpp"
#include "sim/scenario_ranks.hpp"
#include "sim/scenario_units.hpp"
#include "sim/scenario_writer.hpp"
#include "traces/whole_text.hpp"

namespace remat {
namespace {

constexpr std::int64_t steps_max = 1'000'000;
constexpr std::int64_t microbatches_max = 100'000;
constexpr std::int64_t actions_max = 10'000'000;  // of all steps

BoundaryPasses boundaries_of(const JsonPlace& place) {
  const std::string name = place.text();
  if (name == "both") return BoundaryPasses::both;
  if (name == "forward") return BoundaryPasses::forward;
  if (name == "none") return BoundaryPasses::none;
  place.fail("unknown boundaries '" + name + "'; expected both, forward or none");
}

void read_protocol(const JsonPlace& place, Scenario& scenario, ProgramReading& reading) {
  place.allow_only({"name",          "early_stop",
                    "compat",        "determinism_check",
                    "preserve_rng",  "allow_cache_entry_mutation",
                    "ambient_hooks", "boundaries",
                    "state_hooks",   "dw_tasks",
                    "keep",          "keep_collectives",
                    "keep_every",    "units",
                    "select",        "sub_models",
                    "keeps_any",     "mode",
                    "offload",       "recompute_ratio"});
  scenario.protocol = place.at("name").text();
  if (make_protocol(scenario.protocol, {}) == nullptr) {
    place.at("name").fail("unknown protocol '" + scenario.protocol + "'; expected one of " +
                          known_protocols());
  }
  ProtocolOptions& options = scenario.options;
  if (const auto flag = place.find("early_stop")) options.early_stop = flag->boolean();
  if (const auto flag = place.find("determinism_check"))
    options.determinism_check = flag->boolean();
  if (const auto flag = place.find("allow_cache_entry_mutation"))
    options.allow_cache_entry_mutation = flag->boolean();
  if (const auto flag = place.find("ambient_hooks")) options.ambient_hooks = flag->boolean();
  if (const auto flag = place.find("state_hooks")) options.state_hooks = flag->boolean();
  if (const auto every = place.find("keep_every")) options.keep_every = every->integer(0);
  if (const auto flag = place.find("keep_collectives")) {
    options.keep_collectives = flag->boolean();
    if (!make_protocol(scenario.protocol, {})->serves_kept_ops()) {
      flag->fail("'" + scenario.protocol + "' keeps no ops; expected no such option");
    }
  }
  if (const auto flag = place.find("preserve_rng")) scenario.rank.preserves_rng = flag->boolean();
  if (const auto compat = place.find("compat")) {
    const std::string name = compat->text();
    if (name != "strict" && name != "torch" && name != "public")
      compat->fail("unknown compat '" + name + "'; expected strict, torch or public");
    options.compat = name == "torch"    ? Compat::torch
                     : name == "public" ? Compat::public_code
                                        : Compat::strict;
    scenario.rank.dw_counts_once = options.compat == Compat::strict;
  }
  read_units(place, scenario);
  reading.keeps_units_of = [policy = UnitPolicy(options.units, {})](std::string_view owner) {
    return policy.keeps_any(owner);
  };
  if (const auto ratio = place.find("recompute_ratio"))
    options.recompute_ratio = ratio_from(*ratio);
  if (const auto offload = place.find("offload")) {
    options.offload = offload_from(*offload);
    if (!options.offload && scenario.protocol == "offload")
      offload->fail("the protocol is offload; expected true, or another protocol");
  }
  if (const auto passes = place.find("boundaries")) {
    options.boundaries = boundaries_of(*passes);
    if (!takes_boundaries(scenario.protocol))
      passes->fail("'" + scenario.protocol + "' has no boundaries; expected no such option");
  }
  if (const auto tasks = place.find("dw_tasks")) {
    const std::string name = tasks->text();
    if (name != "one" && name != "per_group")
      tasks->fail("unknown dw_tasks '" + name + "'; expected one or per_group");
    scenario.rank.dw_task_per_group = name == "per_group";
  }
  if (const auto keep = place.find("keep")) {
    reading.kept_ops = keep->texts();
    for (const JsonPlace& name : keep->items()) {
      if (find_op_kind(name.text()) == nullptr)
        name.fail("unknown op kind '" + name.text() + "'; expected one of the kinds of ops");
    }
  }
}

/// "F0.1", "DX0.1", "UPDATE", "ZERO_GRAD".
Action parsed_action(const JsonPlace& place, const std::string& text, std::int64_t microbatches) {
  if (text == "UPDATE") return {ActionKind::update, 0};
  if (text == "ZERO_GRAD") return {ActionKind::zero_grad, 0};
  const std::pair<std::string_view, ActionKind> kinds[] = {
      {"DX", ActionKind::dx}, {"DW", ActionKind::dw},      {"F", ActionKind::forward},
      {"I", ActionKind::dx},  {"B", ActionKind::backward}, {"W", ActionKind::dw}};
  for (const auto& [name, kind] : kinds) {
    if (!text.starts_with(name)) continue;
    const std::string_view rest = std::string_view(text).substr(name.size());
    std::int64_t microbatch = -1;
    if (rest.starts_with("0.")) {
      const char* const end = rest.data() + rest.size();
      const auto [stop, error] = std::from_chars(rest.data() + 2, end, microbatch);
      if (error != std::errc() || stop != end) microbatch = -1;
    }
    if (microbatch < 0 || microbatch >= microbatches) break;
    return {kind, microbatch};
  }
  place.fail("'" + text +
             "' is no action; expected F, B, DX or DW with stage 0 and a micro-batch " + "below " +
             std::to_string(microbatches) + " (F0.1), UPDATE or ZERO_GRAD");
}

struct ListedAction {
  Action action;
  std::optional<std::int64_t> group = std::nullopt;
  std::vector<ValueId> wrt = {};
  bool catches = false;
};

bool is_of_a_microbatch(ActionKind kind) {
  return kind != ActionKind::update && kind != ActionKind::zero_grad;
}

/// An input or parameter by its name.
ValueId leaf_named(const JsonPlace& place, const Program& program) {
  const std::string name = place.text();
  for (std::uint32_t i = 0; i < program.values.size(); ++i) {
    const ProgramValue& value = program.values[ValueId(i)];
    const BufferRole role = program.buffers[value.buffer].role;
    const bool is_leaf = role == BufferRole::input || role == BufferRole::param;
    if (is_leaf && value.name == name && value.requires_grad) return ValueId(i);
  }
  place.fail("'" + name + "' is no leaf that requires grad; expected an input or a parameter");
}

ListedAction read_action(const JsonPlace& place, std::int64_t microbatches,
                         const Program& program) {
  if (!place.is_object()) return {parsed_action(place, place.text(), microbatches), std::nullopt};
  place.allow_only({"action", "retain", "group", "wrt", "catch"});
  ListedAction listed{parsed_action(place.at("action"), place.at("action").text(), microbatches),
                      std::nullopt};
  if (const auto retain = place.find("retain")) listed.action.retain = retain->boolean();
  if (const auto group = place.find("group")) listed.group = group->integer(0);
  if (const auto wrt = place.find("wrt")) {
    for (const JsonPlace& name : wrt->items())
      listed.wrt.push_back(leaf_named(name, program));
    if (listed.action.kind != ActionKind::backward)
      wrt->fail("only a B asks for some gradients; expected no 'wrt' here");
  }
  if (const auto flag = place.find("catch")) {
    listed.catches = flag->boolean();
    if (!is_of_a_microbatch(listed.action.kind))
      flag->fail("this action raises nothing; expected no 'catch' here");
  }
  return listed;
}

PhaseStep phase_of(const ListedAction& listed) {
  PhaseStep step{.microbatch = listed.action.microbatch,
                 .retain = listed.action.retain,
                 .group = listed.group,
                 .wrt = listed.wrt,
                 .catches = listed.catches};
  switch (listed.action.kind) {
    case ActionKind::forward:
      step.kind = PhaseStep::Kind::forward;
      break;
    case ActionKind::backward:
      step.kind = PhaseStep::Kind::backward;
      break;
    case ActionKind::dx:
      step.kind = PhaseStep::Kind::dx;
      break;
    case ActionKind::dw:
      step.kind = PhaseStep::Kind::dw;
      break;
    case ActionKind::update:
      step.kind = PhaseStep::Kind::update;
      step.microbatch.reset();
      break;
    case ActionKind::zero_grad:
      step.kind = PhaseStep::Kind::zero_grad;
      step.microbatch.reset();
      break;
  }
  return step;
}

std::vector<ListedAction> read_list(const JsonPlace& list, std::int64_t microbatches,
                                    const Program& program) {
  std::vector<ListedAction> actions;
  std::set<std::int64_t> has_run;
  std::set<std::int64_t> has_dx;
  for (const JsonPlace& item : list.items()) {
    actions.push_back(read_action(item, microbatches, program));
    const Action& action = actions.back().action;
    if (action.kind == ActionKind::forward) has_run.insert(action.microbatch);
    if (action.kind == ActionKind::dx) has_dx.insert(action.microbatch);
    const bool needs_forward =
        action.kind != ActionKind::forward && is_of_a_microbatch(action.kind);
    if (needs_forward && has_run.count(action.microbatch) == 0) {
      item.fail(name_of(action) + " comes before the forward of its micro-batch; expected F0." +
                std::to_string(action.microbatch) + " earlier in the step");
    }
    if (action.kind == ActionKind::dw && has_dx.count(action.microbatch) == 0) {
      item.fail(name_of(action) + " comes before the other half of its backward; expected DX0." +
                std::to_string(action.microbatch) + " earlier in the step");
    }
  }
  return actions;
}

void read_schedule(const std::string& file, const std::optional<JsonPlace>& place,
                   std::int64_t steps, Scenario& scenario) {
  std::int64_t microbatches = 1;
  bool split = false;
  bool updates = false;
  std::optional<JsonPlace> actions;
  if (place) {
    place->allow_only({"microbatches", "backward", "update", "actions"});
    if (const auto n = place->find("microbatches")) {
      microbatches = n->integer(1);
      if (microbatches > microbatches_max)
        n->fail("so many micro-batches are not simulated; expected 100,000 or fewer");
    }
    if (const auto how = place->find("backward")) {
      const std::string name = how->text();
      if (name != "full" && name != "split")
        how->fail("unknown backward '" + name + "'; expected full or split");
      split = name == "split";
    }
    if (const auto flag = place->find("update")) updates = flag->boolean();
    actions = place->find("actions");
  }
  std::vector<std::vector<ListedAction>> lists;  // of one step each; the last goes on
  if (actions && !actions->items().empty() && actions->items().front().is_array()) {
    for (const JsonPlace& list : actions->items())
      lists.push_back(read_list(list, microbatches, scenario.program));
  } else if (actions) {
    lists.push_back(read_list(*actions, microbatches, scenario.program));
  } else {
    std::vector<ListedAction>& list = lists.emplace_back();
    for (const Action& action : all_forwards_first(microbatches, split, updates))
      list.push_back({action, std::nullopt});
  }
  std::int64_t n_actions = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::vector<ListedAction>& list =
        lists[std::min<std::size_t>(static_cast<std::size_t>(step), lists.size() - 1)];
    n_actions += std::ssize(list);
    if (n_actions > actions_max) {
      throw InputError(file +
                       ": all steps together have more than 10,000,000 actions; expected "
                       "fewer steps or shorter lists");
    }
    scenario.order.push_back({.kind = PhaseStep::Kind::step_begin});
    for (const ListedAction& listed : list)
      scenario.order.push_back(phase_of(listed));
    scenario.order.push_back({.kind = PhaseStep::Kind::step_end});
  }
}

void read_machine(const JsonPlace& place, Scenario& scenario, ProgramReading& reading) {
  place.allow_only({"memory_bytes", "flops_per_second", "bytes_per_second", "links"});
  if (const auto bytes = place.find("memory_bytes")) scenario.memory_bytes = bytes->integer(1);
  if (const auto rate = place.find("flops_per_second"))
    reading.rates.flops_per_second = rate->integer(1);
  if (const auto rate = place.find("bytes_per_second"))
    reading.rates.bytes_per_second = rate->integer(1);
  if (const auto links = place.find("links")) scenario.rank.links = links_from(*links);
}

}  // namespace

Scenario parse_scenario(const std::string& file, const std::string& text) {
  const JsonDocument document(file, text);
  const JsonPlace root(document);
  root.allow_only({"format", "version", "name", "about", "case", "program", "protocol", "schedule",
                   "machine", "ranks", "groups", "steps", "seed"});
  for (const char* key : {"name", "about", "case"})
    if (const auto words = root.find(key)) words->text();
  if (root.at("format").text() != "rematsim-scenario")
    root.at("format").fail("this is no scenario; expected \"rematsim-scenario\"");
  const std::int64_t version = root.at("version").integer(1);
  if (version > 1) {
    root.at("version").fail("version " + std::to_string(version) +
                            " is newer than this program knows; expected 1");
  }
  Scenario scenario;
  ProgramReading reading;
  if (const auto protocol = root.find("protocol")) read_protocol(*protocol, scenario, reading);
  if (const auto machine = root.find("machine")) read_machine(*machine, scenario, reading);
  read_ranks(root, scenario, reading);
  read_programs(root.at("program"), scenario, reading);
  if (const auto protocol = root.find("protocol")) check_models(*protocol, scenario);
  const auto steps = root.find("steps");
  const std::int64_t n_steps = steps ? steps->integer(1) : 1;
  if (n_steps > steps_max)
    steps->fail("so many steps are not simulated; expected 1,000,000 or fewer");
  read_schedule(file, root.find("schedule"), n_steps, scenario);
  if (const auto seed = root.find("seed"))
    scenario.rank.seed = static_cast<std::uint64_t>(seed->integer(0));
  scenario.rank.inputs_per_microbatch = true;
  const auto protocol = root.find("protocol");
  scenario.config_json =
      config_json(protocol ? protocol->dumped() : R"({"name":"none"})", scenario);
  return scenario;
}

Scenario read_scenario(const std::string& path) {
  const std::string name = shown_path(path);
  constexpr std::size_t mib_max = 64;
  const std::string text = whole_text(path, mib_max, "a scenario");
  if (text.empty()) throw InputError(name + ": the file is empty; expected a scenario");
  return parse_scenario(name, text);
}

}  // namespace remat
