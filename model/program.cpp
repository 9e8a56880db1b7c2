#include "model/program.hpp"

#include <algorithm>

#include "model/flat_map.hpp"
#include "model/uses.hpp"

namespace remat {
namespace {

/// Which statements make and read each value of one forward.
struct Uses {
  FlatMap<std::size_t> made;                           // value → 1 + its statement
  FlatMap<std::size_t> last_read;                      // likewise
  std::vector<std::pair<std::size_t, ValueId>> reads;  // in statement order
  std::vector<std::size_t> skipped_by;                 // by statement: see skipping_regions
  std::vector<bool> forward_only;                      // likewise: no replay runs it
};

std::vector<bool> forward_only_statements(const Forward& forward) {
  std::vector<bool> only(forward.statements.size(), false);
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    const auto* branch = std::get_if<BranchBegin>(&forward.statements[at]);
    if (branch == nullptr || branch->in_replay) continue;
    std::fill(only.begin() + static_cast<std::ptrdiff_t>(at),
              only.begin() + static_cast<std::ptrdiff_t>(branch->end), true);
  }
  return only;
}

/// For each statement of an excluded region's body, 1 + the beginning of the innermost checkpointed
/// region around it: whose replay leaves the body out. A replay of one further out runs it.
std::vector<std::size_t> skipping_regions(const Forward& forward) {
  std::vector<std::size_t> skipped_by(forward.statements.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    while (!open.empty() && std::get<RegionBegin>(forward.statements[open.back()]).end <= at)
      open.pop_back();
    const auto* region = std::get_if<RegionBegin>(&forward.statements[at]);
    if (region != nullptr && region->kind == RegionKind::checkpointed) open.push_back(at);
    const auto* wrapper = std::get_if<WrapperBegin>(&forward.statements[at]);
    if (wrapper == nullptr || !is_left_out(*wrapper) || open.empty() ||
        skipped_by[at] == open.back() + 1)
      continue;
    std::fill(skipped_by.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              skipped_by.begin() + static_cast<std::ptrdiff_t>(wrapper->end), open.back() + 1);
  }
  return skipped_by;
}

Uses uses_of(const Forward& forward) {
  Uses uses;
  uses.skipped_by = skipping_regions(forward);
  uses.forward_only = forward_only_statements(forward);
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    each_use(forward, at, [&](ValueId value, Use use) {
      if (use == Use::read || use == Use::saved) uses.reads.push_back({at, value});
      if (use == Use::read) uses.last_read[value.index()] = at + 1;
      if (use == Use::made) uses.made[value.index()] = at + 1;
    });
    const auto* wrapper = std::get_if<WrapperBegin>(&forward.statements[at]);
    if (wrapper == nullptr) continue;
    for (const WrapperBegin::Boundary& boundary : wrapper->boundaries) {
      uses.reads.push_back({at, wrapper->outputs[boundary.leaf]});
      uses.made[boundary.value.index()] = wrapper->end + 1;
    }
  }
  if (forward.root) uses.last_read[forward.root->index()] = forward.statements.size() + 1;
  return uses;
}

void note_param(RegionBegin& region, ValueId value, bool in_excluded) {
  const auto is_it = [&](const RegionBegin::Param& param) { return param.value == value; };
  const auto known = std::find_if(region.params.begin(), region.params.end(), is_it);
  if (known == region.params.end()) {
    region.params.push_back({value, in_excluded});
  } else {
    known->in_excluded &= in_excluded;
  }
}

void find_captured(const Program& program, const Forward& forward, const Uses& uses,
                   std::size_t begin, RegionBegin& region) {
  IdSet seen;
  for (const ValueId input : region.inputs)
    seen.insert(input.index());
  for (const auto& [at, value] : uses.reads) {
    if (at <= begin || at >= region.end || seen.contains(value.index())) continue;
    const std::size_t* made = uses.made.find(value.index());
    const bool is_from_inside = made != nullptr && *made - 1 > begin;
    const bool is_param = program.buffers[program.values[value].buffer].role == BufferRole::param;
    if (is_param && !is_from_inside && uses.forward_only[at]) continue;
    if (is_param && !is_from_inside) {
      // A wrapper that is given a parameter has not read it yet.
      const bool is_handed_on = std::holds_alternative<WrapperBegin>(forward.statements[at]) ||
                                std::holds_alternative<NeedsTensor>(forward.statements[at]);
      note_param(region, value, is_handed_on || uses.skipped_by[at] == begin + 1);
      continue;
    }
    seen.insert(value.index());
    if (!is_from_inside) region.captured.push_back(value);
  }
}

/// What the statements between two places make and later ones read.
std::vector<ValueId> outputs_of(const Forward& forward, const Uses& uses, std::size_t begin,
                                std::size_t end) {
  std::vector<ValueId> outputs;
  for (std::size_t at = begin + 1; at < end; ++at) {
    const auto* op = std::get_if<OpStatement>(&forward.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId output : op->outputs) {
      const std::size_t* read = uses.last_read.find(output.index());
      if (read != nullptr && *read - 1 > end) outputs.push_back(output);
    }
  }
  return outputs;
}

/// A buffer's first value is the one that it was made for.
void find_constants(Program& program) {
  FlatMap<std::uint32_t> made_for;
  for (std::uint32_t i = 0; i < program.values.size(); ++i) {
    ProgramValue& value = program.values[ValueId(i)];
    value.constant = layout_constant(value.layout);
    value.of_holes = Ring();
    const std::uint32_t* first = made_for.find(value.buffer.index());
    if (first == nullptr) {
      made_for[value.buffer.index()] = i;
      program.buffers[value.buffer].has_holes = has_holes(value.layout);
    } else if (program.buffers[value.buffer].has_holes &&
               reaches_outside(value.layout, program.values[ValueId(*first)].layout)) {
      value.of_holes = hole_constant(value.layout);
    }
  }
}

using LayerNames = std::map<std::string, std::map<std::string, std::size_t>>;  // by model

void number_layers(Forward& forward, LayerNames& known) {
  std::vector<RegionBegin*> open;
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    auto* region = std::get_if<RegionBegin>(&forward.statements[at]);
    if (region == nullptr || region->kind != RegionKind::checkpointed) continue;
    while (!open.empty() && open.back()->end < at)
      open.pop_back();
    const auto is_of_it = [&](const RegionBegin* outer) { return outer->owner == region->owner; };
    const auto outer = std::find_if(open.rbegin(), open.rend(), is_of_it);
    auto& names = known[region->owner];
    region->layer.index = outer != open.rend()
                              ? (*outer)->layer.index
                              : names.try_emplace(region->name, names.size()).first->second;
    open.push_back(region);
  }
}

void number_layers(Program& program) {
  LayerNames known;
  for (Forward& forward : program.forwards)
    number_layers(forward, known);
  for (Forward& forward : program.forwards) {
    for (Statement& statement : forward.statements) {
      auto* region = std::get_if<RegionBegin>(&statement);
      if (region != nullptr && region->kind == RegionKind::checkpointed)
        region->layer.count = known.at(region->owner).size();
    }
  }
}

/// A view is what lies on an input's storage; what is written in place stays what it was. Source:
/// torch's autograd, for which `_unsafe_view` makes none.
void find_views(Program& program) {
  for (const Forward& forward : program.forwards) {
    for (const Statement& statement : forward.statements) {
      const auto* op = std::get_if<OpStatement>(&statement);
      if (op == nullptr || op->kind->name == "_unsafe_view") continue;
      for (const ValueId output : op->outputs) {
        ProgramValue& value = program.values[output];
        const auto lies_on = [&](ValueId input) {
          return program.values[input].buffer == value.buffer;
        };
        value.is_view = op->writes ? program.values[*op->writes].is_view || output != op->outputs[0]
                                   : std::any_of(op->inputs.begin(), op->inputs.end(), lies_on);
      }
    }
  }
}

}  // namespace

std::vector<ValueId> values_from_outside(const Program& program, const Forward& forward,
                                         std::size_t begin, std::size_t end) {
  IdSet made;
  IdSet seen;
  std::vector<ValueId> read;
  const auto meet = [&](ValueId value) {
    if (made.contains(value.index()) || seen.contains(value.index()) ||
        program.buffers[program.values[value].buffer].role == BufferRole::param)
      return;
    seen.insert(value.index());
    read.push_back(value);
  };
  for (std::size_t at = begin; at < end; ++at) {
    if (const auto* left = std::get_if<WrapperEnd>(&forward.statements[at])) {
      for (const WrapperBegin::Boundary& boundary :
           std::get<WrapperBegin>(forward.statements[left->begin]).boundaries)
        made.insert(boundary.value.index());
    }
    each_use(forward, at, [&](ValueId value, Use use) {
      if (use == Use::read) meet(value);
      if (use == Use::made) made.insert(value.index());
    });
  }
  return read;
}

void finish_program(Program& program) {
  find_constants(program);
  find_views(program);
  number_layers(program);
  for (Forward& forward : program.forwards) {
    const Uses uses = uses_of(forward);
    for (std::size_t at = 0; at < forward.statements.size(); ++at) {
      if (auto* wrapper = std::get_if<WrapperBegin>(&forward.statements[at])) {
        if (!wrapper->tells_outputs) wrapper->outputs = outputs_of(forward, uses, at, wrapper->end);
      }
      auto* region = std::get_if<RegionBegin>(&forward.statements[at]);
      if (region == nullptr) continue;
      region->captured.clear();
      region->params.clear();
      find_captured(program, forward, uses, at, *region);
      region->outputs = outputs_of(forward, uses, at, region->end);
    }
  }
}

std::map<std::string, std::size_t> layers_of_models(const Program& program) {
  std::map<std::string, std::size_t> models;
  for (const Forward& forward : program.forwards) {
    for (const Statement& statement : forward.statements) {
      const auto* region = std::get_if<RegionBegin>(&statement);
      if (region != nullptr && region->kind == RegionKind::checkpointed)
        models.try_emplace(region->owner, region->layer.count);
    }
  }
  return models;
}

}  // namespace remat
