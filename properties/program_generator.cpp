#include "properties/program_generator.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "model/collectives.hpp"
#include "model/errors.hpp"
#include "model/phase_order.hpp"
#include "properties/body_generator.hpp"
#include "properties/unit_generator.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario_writer.hpp"

namespace remat {
namespace {

constexpr std::array<std::string_view, feature_count> feature_names = {
    "views",      "in_place",     "containers",       "random",          "no_grad",
    "nesting",    "fan_out",      "many_outputs",     "unused",          "side_effects",
    "frozen",     "updates",      "whole_replays",    "microbatches",    "steps",
    "retain",     "split",        "partial",          "dropped",         "groups",
    "sharing",    "forward_only", "same_shapes",      "counted_policy",  "odd_params",
    "excluded",   "chains",       "nested_arguments", "fresh_arguments", "caught_errors",
    "save_units", "two_models",   "odd_markers",      "compiled",        "offload",
    "ranks",      "some_layers"};

constexpr std::array<std::string_view, 11> protocol_names = {
    "torch", "torch-sac", "torch-reentrant", "none",    "exclude", "exclude-rederive",
    "remat", "kept-ops",  "kept-callables",  "markers", "offload"};

std::string choose_protocol(ChoiceTape& tape, const std::string& only) {
  if (only.empty()) return std::string(protocol_names[tape.choose(protocol_names.size())]);
  const auto found = std::find(protocol_names.begin(), protocol_names.end(), only);
  REMAT_INVARIANT(found != protocol_names.end());
  tape.settle(static_cast<std::uint64_t>(found - protocol_names.begin()));
  return only;
}

/// What becomes of one micro-batch's graph.
enum class BackwardForm : std::uint8_t { whole, retained, split, partial, dropped };

/// How the steps of a case go.
struct OrderPlan {
  BackwardForm form = BackwardForm::whole;
  bool in_groups = false;
  ValueId leaf{0};  // that a partial backward asks for
};

BackwardForm choose_form(ChoiceTape& tape, const GeneratedCase& made) {
  if (made.edit != Edit::none) return BackwardForm::whole;
  const std::string& protocol = made.scenario.protocol;
  // A selective region and one with excluded regions stand one replay, a reentrant one no partial
  // gradient.
  const bool may_split = protocol == "torch" || protocol == "none" || protocol == "offload";
  std::vector<BackwardForm> forms = {BackwardForm::whole};
  const bool stands_one_replay = protocol == "torch-sac" || protocol == "exclude" ||
                                 protocol == "exclude-rederive" || unit_kinds(protocol).any();
  if (made.has(Feature::retain) && !stands_one_replay) forms.push_back(BackwardForm::retained);
  if (made.has(Feature::split) && may_split) forms.push_back(BackwardForm::split);
  if (made.has(Feature::partial) && protocol != "torch-reentrant")
    forms.push_back(BackwardForm::partial);
  if (made.has(Feature::dropped)) forms.push_back(BackwardForm::dropped);
  return forms.size() == 1 ? forms[0] : forms[tape.choose(forms.size())];
}

void add_backwards(const OrderPlan& plan, Edit edit, std::vector<PhaseStep>& actions) {
  PhaseStep backward{.kind = PhaseStep::Kind::backward};
  if (plan.in_groups) backward.group = 0;
  switch (plan.form) {
    case BackwardForm::whole:
      break;
    case BackwardForm::retained:
      backward.retain = true;
      actions.push_back(backward);
      backward.retain = false;
      if (plan.in_groups) backward.group = 1;
      break;
    case BackwardForm::split:
      actions.push_back({.kind = PhaseStep::Kind::dx});
      actions.push_back({.kind = PhaseStep::Kind::dw});
      return;
    case BackwardForm::partial:
      backward.wrt = {plan.leaf};
      break;
    case BackwardForm::dropped:
      return;
  }
  const bool keeps_graph =
      edit == Edit::selective_twice || edit == Edit::group_twice || edit == Edit::excluded_twice;
  if (edit == Edit::group_twice) backward.group = 0;
  if (edit == Edit::partial_through_reentrant) backward.wrt = {plan.leaf};
  backward.retain = keeps_graph;
  actions.push_back(backward);
  backward.retain = false;
  if (keeps_graph || edit == Edit::backward_twice) actions.push_back(backward);
}

/// One step: the actions of every micro-batch in their order, interleaved.
void add_step(ChoiceTape& tape, GeneratedCase& made, const OrderPlan& plan,
              std::size_t n_microbatches) {
  std::vector<std::vector<PhaseStep>> actions(n_microbatches);
  std::vector<std::uint32_t> lengths;
  for (std::vector<PhaseStep>& of_one : actions) {
    of_one.push_back({.kind = PhaseStep::Kind::forward});
    add_backwards(plan, made.edit, of_one);
    lengths.push_back(static_cast<std::uint32_t>(of_one.size()));
  }
  PhaseOrder& order = made.scenario.order;
  order.push_back({.kind = PhaseStep::Kind::step_begin});
  Interleaving interleaving(tape, made.strategy, lengths);
  std::vector<std::size_t> taken(n_microbatches, 0);
  while (!interleaving.is_done()) {
    const std::size_t microbatch = interleaving.next();
    order.push_back(actions[microbatch][taken[microbatch]++]);
    order.back().microbatch = static_cast<std::int64_t>(microbatch);
  }
  if (made.has(Feature::updates)) order.push_back({.kind = PhaseStep::Kind::update});
  order.push_back({.kind = PhaseStep::Kind::step_end});
}

void add_order(ChoiceTape& tape, GeneratedCase& made, OrderPlan plan) {
  // Most orders that several can go wrong in need no more than two.
  constexpr std::array<std::size_t, 16> microbatches = {1, 1, 1, 1, 1, 2, 2, 2,
                                                        2, 3, 3, 4, 5, 6, 7, 8};
  const std::size_t n_microbatches =
      made.has(Feature::microbatches) ? microbatches[tape.choose(microbatches.size())] : 1;
  const std::uint64_t n_steps =
      made.has(Feature::steps) && n_microbatches <= 2 ? 1 + tape.choose(3) : 1;
  if (n_microbatches > 1) made.strategy = static_cast<Strategy>(tape.choose(strategy_count));
  const Program& program = made.scenario.program;
  std::vector<ValueId> leaves = program.forwards.front().inputs;
  for (const ValueId param : program.parameters)
    if (program.values[param].requires_grad) leaves.push_back(param);
  plan.leaf = leaves[plan.form == BackwardForm::partial ? tape.choose(leaves.size()) : 0];
  for (std::uint64_t step = 0; step < n_steps; ++step)
    add_step(tape, made, plan, n_microbatches);
}

/// The loop catches what the actions of a step raise, lets go of their gradients, and does them all
/// again.
PhaseOrder done_again(const PhaseOrder& order) {
  PhaseOrder again;
  std::size_t first = 0;  // of the step's actions
  for (const PhaseStep& step : order) {
    if (step.kind == PhaseStep::Kind::step_end || step.kind == PhaseStep::Kind::update) {
      const PhaseOrder actions(again.begin() + static_cast<std::ptrdiff_t>(first), again.end());
      for (std::size_t at = first; at < again.size(); ++at)
        again[at].catches = true;
      if (!actions.empty()) again.push_back({.kind = PhaseStep::Kind::zero_grad});
      again.insert(again.end(), actions.begin(), actions.end());
      first = again.size() + 1;  // an end may follow
    }
    again.push_back(step);
    if (step.kind == PhaseStep::Kind::step_begin) first = again.size();
  }
  return again;
}

/// In half of the cases that raise: it is raised once, and caught. Drawn last, so that a tape means
/// the same program with it and without.
void retry(ChoiceTape& tape, GeneratedCase& made) {
  if (made.edit != Edit::raise_in_forward && made.edit != Edit::raise_in_replay) return;
  made.is_retried = tape.choose(2) == 1;
  if (!made.is_retried) return;
  for (Statement& statement : made.scenario.program.forwards.front().statements) {
    auto* raise = std::get_if<Raise>(&statement);
    // What the program catches itself raises in every run.
    if (raise != nullptr && raise->runs != Raise::Runs::always) raise->times = 1;
  }
  made.scenario.order = done_again(made.scenario.order);
}

/// The caller writes something that the edit names, between forward and backward.
void write_by_caller(ProgramBuilder& builder, const BodyGenerator& body, GeneratedCase& made) {
  std::optional<ValueId> target;
  if (made.edit == Edit::argument_written) target = body.region_argument();
  if (made.edit == Edit::hidden_argument_written) target = body.hidden_argument();
  if (made.edit == Edit::parameter_written) target = body.read_param();
  if (target) builder.update(builder.since_write(*target));
}

/// Which layers are sent and where to; now and then one is no group.
void choose_groups(ChoiceTape& tape, Program& program) {
  std::vector<Statement>& statements = program.forwards.front().statements;
  for (std::size_t at = 0; at < statements.size(); ++at) {
    auto* group = std::get_if<OffloadBegin>(&statements[at]);
    if (group == nullptr) continue;
    group->level = static_cast<MemoryLevel>(tape.choose(memory_level_count));
    if (tape.choose(4) == 3) group->end = at + 1;  // nothing lies in it
  }
}

/// What is sent, and over how fast a link. Drawn last, like a retry.
void choose_offload(ChoiceTape& tape, Scenario& scenario) {
  choose_groups(tape, scenario.program);
  OffloadOptions options;
  const std::array<bool*, 5> things = {nullptr, &options.saved, &options.region_inputs,
                                       &options.excluded, &options.cached};
  if (bool* left_out = things[tape.choose(things.size())]) *left_out = false;
  scenario.options.offload = options;
  constexpr std::array<LinkRate, 3> rates = {LinkRate{}, LinkRate{1'000'000'000, {20}},
                                             LinkRate{10'000'000, {}}};
  for (LinkRate& link : scenario.rank.links)
    link = rates[tape.choose(rates.size())];
}

/// Whether collectives that are asked for are kept. Drawn last, like a retry.
void choose_kept_collectives(ChoiceTape& tape, Scenario& scenario) {
  const std::uint64_t choice = tape.choose(3);
  if (choice != 0) scenario.options.keep_collectives = choice == 1;
}

/// Which layers are checkpointed, of each model or of one. What an edit is to end in needs its
/// region. Drawn last, like a retry.
void choose_layers(ChoiceTape& tape, GeneratedCase& made) {
  if (!made.has(Feature::some_layers) || made.edit != Edit::none) return;
  constexpr std::array ratios = {0.5, 0.7, 0.34, 1.0, 0.0};
  RecomputeRatio& ratio = made.scenario.options.recompute_ratio;
  const double chosen = ratios[tape.choose(ratios.size())];
  if (tape.choose(3) < 2) {
    ratio.of_models = chosen;
    return;
  }
  const std::map<std::string, std::size_t> models = layers_of_models(made.scenario.program);
  ratio.of_model[std::next(models.begin(), static_cast<std::ptrdiff_t>(tape.choose(models.size())))
                     ->first] = chosen;
}

/// No layer may have become one of the second model.
void drop_unknown_models(Scenario& scenario) {
  const std::map<std::string, std::size_t> models = layers_of_models(scenario.program);
  std::erase_if(scenario.options.units.sub_models,
                [&](const auto& selection) { return !models.contains(selection.first); });
}

void set_options(ChoiceTape& tape, GeneratedCase& made) {
  Scenario& scenario = made.scenario;
  if (made.edit == Edit::fewer_saves_unchecked) scenario.options.determinism_check = false;
  if (made.has(Feature::counted_policy) && scenario.protocol == "torch-sac" &&
      made.edit == Edit::none)
    scenario.options.keep_every = 2;
  if (made.is_split) scenario.rank.dw_task_per_group = tape.choose(2) == 0;
  scenario.rank.seed = 0;
  scenario.rank.inputs_per_microbatch = true;
}

}  // namespace

std::string_view name_of(Feature feature) {
  return feature_names[static_cast<std::size_t>(feature)];
}

GeneratedCase generate_case(ChoiceTape& tape, const GeneratorOptions& options) {
  GeneratedCase made;
  Scenario& scenario = made.scenario;
  scenario.protocol = choose_protocol(tape, options.protocol);
  made.features = tape.choose(std::uint64_t{1} << feature_count);
  made.features &= ~options.without;
  made.edit = choose_edit(tape, scenario.protocol);
  if (options.legal_only) made.edit = Edit::none;
  OrderPlan plan{.form = choose_form(tape, made),
                 .in_groups = made.has(Feature::groups) && made.edit == Edit::none};
  made.is_split = plan.form == BackwardForm::split;
  if (made.has_ranks()) scenario.n_ranks = 2 + static_cast<std::uint32_t>(tape.choose(3));
  if (unit_kinds(scenario.protocol).any()) scenario.options.units = choose_units(tape, made);
  ProgramBuilder builder;
  if (made.has_ranks()) builder.set_groups({all_ranks(scenario.n_ranks)});
  BodyGenerator body(tape, made, builder);
  const ValueId root = body.write();
  write_by_caller(builder, body, made);
  scenario.program = builder.finish(root);
  drop_unknown_models(scenario);
  set_options(tape, made);
  add_order(tape, made, plan);
  retry(tape, made);
  if (made.offloads()) choose_offload(tape, scenario);
  if (made.has_ranks() && (scenario.protocol == "torch-sac" || unit_kinds(scenario.protocol).any()))
    choose_kept_collectives(tape, scenario);
  choose_layers(tape, made);
  scenario.config_json = config_json(protocol_json(scenario), scenario);
  return made;
}

}  // namespace remat
