#include "tests/properties/dimensions.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "schedules/registry.hpp"

namespace remat {
namespace {

bool is_value(const GeneratedCase& made, const std::function<bool(const ProgramValue&)>& holds) {
  const Program& program = made.scenario.program;
  for (std::uint32_t i = 0; i < program.values.size(); ++i)
    if (holds(program.values[ValueId(i)])) return true;
  return false;
}

bool any_phase(const GeneratedCase& made, const std::function<bool(const PhaseStep&)>& holds) {
  for (const PhaseStep& step : made.scenario.order)
    if (holds(step)) return true;
  return false;
}

/// Some op's first output is read by nobody, and it is not the root.
bool has_unused(const GeneratedCase& made) {
  std::set<std::uint32_t> read;
  for (const Statement& statement : statements_of(made)) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs)
      read.insert(input.index());
  }
  const auto root = made.scenario.program.forwards.front().root;
  return any_op(made, [&](const OpStatement& op) {
    return op.makes_node && op.outputs.front() != root && read.count(op.outputs[0].index()) == 0;
  });
}

/// Some op reads what is older than what the op before it read.
bool has_fan_out(const GeneratedCase& made) {
  const Program& program = made.scenario.program;
  std::uint32_t newest_before = 0;
  return any_op(made, [&](const OpStatement& op) {
    std::uint32_t newest = 0;
    for (const ValueId input : op.inputs) {
      if (program.buffers[program.values[input].buffer].role != BufferRole::param)
        newest = std::max(newest, input.index());
    }
    const bool goes_back = newest < newest_before && op.makes_node && op.kind->name != "sum";
    newest_before = newest;
    return goes_back;
  });
}

bool has_shared_region(const GeneratedCase& made) {
  std::set<std::string> names;
  return any<RegionBegin>(
      made, [&](const RegionBegin& region) { return !names.insert(region.name).second; });
}

bool has_nested_region(const GeneratedCase& made) {
  std::size_t end = 0;
  const std::vector<Statement>& statements = statements_of(made);
  for (std::size_t at = 0; at < statements.size(); ++at) {
    const auto* region = std::get_if<RegionBegin>(&statements[at]);
    if (region == nullptr) continue;
    if (at < end) return true;
    end = region->end;
  }
  return false;
}

/// Some forward has no backward.
bool has_dropped_graph(const GeneratedCase& made) {
  return !any_phase(made, [](const PhaseStep& step) {
    return step.kind == PhaseStep::Kind::backward || step.kind == PhaseStep::Kind::dw;
  });
}

bool has_equal_shapes(const GeneratedCase& made) {
  return any_op(made, [&](const OpStatement& op) {
    const auto& values = made.scenario.program.values;
    return !op.writes && !op.kind->makes_view && op.makes_node &&
           values[op.inputs[0]].layout.shape == values[op.outputs[0]].layout.shape;
  });
}

/// What each dimension looks like in a case: none where it is off, often enough where it is on.
std::vector<Dimension> dimensions_of_programs() {
  return {
      {Feature::views,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->makes_view; });
       },
       0.15},
      {Feature::in_place,
       [](const auto& made) {
         return any_op(made, [&](const OpStatement& op) {
           return op.writes && !op.by_caller && made.edit == Edit::none;
         });
       },
       0.1},
      {Feature::containers,
       [](const auto& made) { return (made.edit == Edit::none) && has_hidden_tensor(made); }, 0.2},
      {Feature::random,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->draws; });
       },
       0.15},
      {Feature::no_grad,
       [](const auto& made) {
         return made.edit == Edit::none && !made.has(Feature::forward_only) &&
                any<NoGradBegin>(made, [](const NoGradBegin&) { return true; });
       },
       0.05},
      {Feature::nesting, has_nested_region, 0.1},
      {Feature::fan_out, has_fan_out, 0.2},
      {Feature::many_outputs,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) {
           return op.outputs.size() > 1 && !op.kind->draws && !op.writes;
         });
       },
       0.2},
      {Feature::unused,
       [](const auto& made) { return made.edit == Edit::none && has_unused(made); }, 0.1},
      {Feature::side_effects,
       [](const auto& made) {
         return any<SideEffect>(made, [](const SideEffect&) { return true; });
       },
       0.05},
      {Feature::frozen,
       [](const auto& made) {
         return is_value(made, [&](const ProgramValue& value) {
           return !value.requires_grad && value.name.starts_with("w");
         });
       },
       0.2},
      {Feature::odd_params,
       [](const auto& made) {
         return is_value(made, [](const ProgramValue& value) {
           return value.name.starts_with("w") &&
                  (value.layout.shape.empty() || value.layout.dtype == "u8");
         });
       },
       0.2}};
}

/// Some excluded region is the last to see what it was given, or writes it.
bool owns_its_argument(const GeneratedCase& made) {
  const std::vector<Statement>& statements = made.scenario.program.forwards.front().statements;
  const WrapperBegin* around = nullptr;
  for (const Statement& statement : statements) {
    if (std::holds_alternative<WrapperEnd>(statement)) around = nullptr;
    if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) around = wrapper;
    if (around != nullptr && around->hands_over) return true;
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr || around == nullptr || !op->writes) continue;
    const auto is_written = [&](const WrapperBegin::Input& input) {
      return input.value == *op->writes;
    };
    if (std::any_of(around->inputs.begin(), around->inputs.end(), is_written)) return true;
  }
  return false;
}

/// Some region of a chain hands on what no replay will have: an exclusion wrapper is told so, and
/// between saved regions of torch_remat nobody asks for it.
bool has_chain(const GeneratedCase& made) {
  std::set<std::uint32_t> handed_on;
  std::set<std::uint32_t> asked_for;
  std::set<std::uint32_t> returned;
  for (const Statement& statement : statements_of(made)) {
    if (const auto* needs = std::get_if<NeedsTensor>(&statement))
      asked_for.insert(needs->value.index());
    const auto* region = std::get_if<WrapperBegin>(&statement);
    if (region == nullptr) continue;
    if (!region->save_output) return true;
    const bool is_saved = region->policy == WrapperBegin::Policy::save;
    for (const WrapperBegin::Input& input : region->inputs)
      (is_saved ? handed_on : asked_for).insert(input.value.index());
    for (const ValueId output : region->outputs)
      if (is_saved) returned.insert(output.index());
  }
  return std::any_of(returned.begin(), returned.end(), [&](std::uint32_t value) {
    return handed_on.count(value) != 0 && asked_for.count(value) == 0;
  });
}

/// How excluded regions show; edits put some where the dimension is off.
std::vector<Dimension> dimensions_of_excluded_regions() {
  const auto any_wrapper = [](const GeneratedCase& made,
                              const std::function<bool(const WrapperBegin&)>& holds) {
    return made.edit == Edit::none && any<WrapperBegin>(made, holds);
  };
  return {
      {Feature::excluded,
       [=](const auto& made) { return any_wrapper(made, [](const auto&) { return true; }); }, 0.1,
       leaves_regions_out},
      {Feature::chains, [](const auto& made) { return made.edit == Edit::none && has_chain(made); },
       0.02, leaves_regions_out},
      {Feature::nested_arguments,
       [=](const auto& made) {
         return any_wrapper(made, [](const WrapperBegin& wrapper) {
           return std::any_of(wrapper.inputs.begin(), wrapper.inputs.end(),
                              [](const WrapperBegin::Input& input) {
                                return input.path.starts_with("kwarg") ||
                                       input.path.find(".k") != std::string::npos;
                              });
         });
       },
       0.015, leaves_regions_out},
      {Feature::caught_errors,
       [](const auto& made) {
         return any<CatchBegin>(made, [](const CatchBegin&) { return true; });
       },
       0.05},
      {Feature::fresh_arguments,
       [](const auto& made) { return made.edit == Edit::none && owns_its_argument(made); }, 0.005,
       leaves_regions_out}};
}

/// What save units look at.
std::vector<Dimension> dimensions_of_save_units() {
  const auto is_callable = [](const RegionBegin& region) {
    return region.kind == RegionKind::unit;
  };
  return {{Feature::save_units,
           [=](const auto& made) {
             const auto is_generated = [](const Mark& mark) { return mark.name.starts_with("k"); };
             return any<RegionBegin>(made, is_callable) || any<Mark>(made, is_generated);
           },
           0.1, asks_save_units},
          {Feature::two_models,
           [](const auto& made) {
             return any<RegionBegin>(
                 made, [](const RegionBegin& region) { return !region.owner.empty(); });
           },
           0.2, asks_save_units},
          {Feature::odd_markers,
           [](const auto& made) {
             const std::vector<SaveUnit>& units = made.scenario.options.units.units;
             return std::any_of(units.begin(), units.end(), [&](const SaveUnit& unit) {
               if (unit.intervals.empty() || made.edit != Edit::none) return false;
               const auto& [first, last] = unit.intervals.front();
               return last < first || last == "k4";  // which no program passes
             });
           },
           0.02, asks_save_units},
          {Feature::compiled,
           [](const auto& made) {
             return any<CompiledBegin>(made, [](const CompiledBegin&) { return true; });
           },
           0.1, asks_save_units}};
}

bool stands_two_replays(const GeneratedCase& made) {
  const std::string& protocol = made.scenario.protocol;
  return protocol == "torch" || protocol == "none" || protocol == "torch-reentrant" ||
         protocol == "remat" || protocol == "offload";
}

bool may_split(const GeneratedCase& made) {
  const std::string& protocol = made.scenario.protocol;
  return protocol == "torch" || protocol == "none" || protocol == "offload";
}

bool counts_calls(const GeneratedCase& made) {
  return made.scenario.protocol == "torch-sac";
}

/// The same of what the training loop does, and of sizes and policies.
std::vector<Dimension> dimensions_of_the_loop() {
  using Kind = PhaseStep::Kind;
  return {
      {Feature::updates,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.kind == Kind::update; });
       },
       0.9},
      {Feature::whole_replays,
       [](const auto& made) {
         return made.edit == Edit::none && any<RegionBegin>(made, [](const RegionBegin& region) {
                  return !region.early_stop;
                });
       },
       0.3},
      {Feature::microbatches,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.microbatch == 1; });
       },
       0.3},
      {Feature::steps, [](const auto& made) { return n_steps(made) > 1; }, 0.2},
      {Feature::retain,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return step.retain; });
       },
       0.2, stands_two_replays},
      {Feature::split,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.kind == Kind::dx; });
       },
       0.2, may_split},
      {Feature::partial,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return !step.wrt.empty(); });
       },
       0.1},
      {Feature::dropped, has_dropped_graph, 0.1},
      {Feature::groups,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return step.group.has_value(); });
       },
       0.3},
      {Feature::sharing, has_shared_region, 0.15},
      {Feature::forward_only,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->name == "cumsum"; });
       },
       0.1},
      {Feature::same_shapes,
       [](const auto& made) { return made.edit == Edit::none && has_equal_shapes(made); }, 0.5},
      {Feature::counted_policy,
       [](const auto& made) { return made.scenario.options.keep_every == 2; }, 0.6, counts_calls},
      {Feature::offload,
       [](const auto& made) {
         return any<OffloadBegin>(made, [](const OffloadBegin&) { return true; });
       },
       0.7, [](const auto& made) { return made.scenario.protocol != "offload"; }},
      {Feature::ranks, [](const auto& made) { return made.scenario.n_ranks > 1; }, 0.6},
      {Feature::some_layers,
       [](const auto& made) {
         const RecomputeRatio& ratio = made.scenario.options.recompute_ratio;
         return ratio.of_models < 1 || !ratio.of_model.empty();
       },
       0.5},
  };
}

}  // namespace

const std::vector<Statement>& statements_of(const GeneratedCase& made) {
  return made.scenario.program.forwards.front().statements;
}

bool leaves_regions_out(const GeneratedCase& made) {
  const std::string& protocol = made.scenario.protocol;
  return protocol == "exclude" || protocol == "exclude-rederive" || protocol == "remat";
}

bool asks_save_units(const GeneratedCase& made) {
  return unit_kinds(made.scenario.protocol).any();
}

bool any_op(const GeneratedCase& made, const std::function<bool(const OpStatement&)>& holds) {
  return any<OpStatement>(made, holds);
}

std::size_t n_steps(const GeneratedCase& made) {
  std::size_t n = 0;
  for (const PhaseStep& step : made.scenario.order)
    n += step.kind == PhaseStep::Kind::step_begin ? 1 : 0;
  return n;
}

bool has_hidden_tensor(const GeneratedCase& made) {
  return is_value(made, [](const ProgramValue& value) { return value.in_container; }) ||
         any<RegionBegin>(made, [](const RegionBegin& region) { return !region.captured.empty(); });
}

std::vector<Dimension> dimensions() {
  std::vector<Dimension> all = dimensions_of_programs();
  for (Dimension& more : dimensions_of_the_loop())
    all.push_back(std::move(more));
  for (Dimension& more : dimensions_of_excluded_regions())
    all.push_back(std::move(more));
  for (Dimension& more : dimensions_of_save_units())
    all.push_back(std::move(more));
  return all;
}

}  // namespace remat
