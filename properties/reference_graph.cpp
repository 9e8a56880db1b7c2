#include "properties/reference_graph.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "properties/reference_layers.hpp"

namespace remat {
ReferenceRules reference_rules(const Scenario& scenario, const Program& program) {
  ReferenceRules rules;
  if (scenario.protocol == "torch" || scenario.protocol == "torch-sac")
    rules.regions = ReferenceRules::Regions::holders;
  rules.rederives = scenario.protocol == "exclude-rederive";
  rules.has_boundaries = scenario.options.boundaries != BoundaryPasses::none;
  rules.remat = scenario.protocol == "remat";
  rules.rederives |= rules.remat;
  rules.excludes = rules.rederives || scenario.protocol == "exclude";
  if (rules.excludes) rules.regions = ReferenceRules::Regions::holders;
  if (scenario.protocol == "torch-reentrant") rules.regions = ReferenceRules::Regions::reentrant;
  rules.selective = scenario.protocol == "torch-sac";
  const std::string& name = scenario.protocol;
  if (name == "kept-ops" || name == "kept-callables" || name == "markers") {
    rules.regions = ReferenceRules::Regions::holders;
    rules.selective = true;
    rules.units = reference_units(scenario, program);
    rules.reentrant_without_units = scenario.options.units.reentrant_without_units;
  }
  rules.plain_layers = reference_plain_layers(scenario, program);
  rules.early_stop = scenario.options.early_stop || rules.remat;
  rules.keep_every = scenario.options.keep_every;
  rules.keeps_collectives = scenario.options.keep_collectives.value_or(true);
  // Regions of save units take containers apart, whatever torch does (I-47).
  rules.tracks_nested_outputs =
      scenario.options.compat == Compat::strict || rules.reentrant_without_units;
  return rules;
}

ReferenceGraph::ReferenceGraph(const Program& program, const ReferenceRules& rules,
                               const ReferenceWrappers& wrappers, std::size_t begin,
                               std::size_t end, const std::vector<ValueId>& roots)
    : program_(&program),
      rules_(&rules),
      wrappers_(&wrappers),
      made_by_(program.values.size()),
      is_made_(program.values.size(), false) {
  walk(begin, end, no_frame, true);
  std::vector<std::uint32_t> open;
  const auto meet = [&](const Edge& edge) {
    if (edge.node == none || nodes_[edge.node].is_reached) return;
    nodes_[edge.node].is_reached = true;
    open.push_back(edge.node);
  };
  for (const ValueId root : roots) {
    roots_.push_back(edge_to(root));
    meet(roots_.back());
  }
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    std::for_each(nodes_[node].edges.begin(), nodes_[node].edges.end(), meet);
  }
}

bool ReferenceGraph::walk(std::size_t begin, std::size_t end, std::size_t frame, bool grad) {
  const std::vector<Statement>& statements = statements_of(*program_);
  for (std::size_t at = begin; at < end; ++at) {
    const Statement& statement = statements[at];
    if (const auto* op = std::get_if<OpStatement>(&statement)) {
      if (grad && op->makes_node && !op->by_caller) {
        add_op(at, *op, frame);
      } else {
        make_without_node(*op);
      }
    } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
      const ReferenceRules::Regions mode = rules_->mode_of(*region);
      if (!grad || mode == ReferenceRules::Regions::plain) continue;
      if (mode == ReferenceRules::Regions::reentrant) {
        if (!walk(at + 1, region->end, no_frame, false)) return false;
        add_reentrant(at, *region);
      } else if (!walk(at + 1, region->end, at, true)) {
        return false;
      }
      if (wrappers_->at(at) != nullptr) add_boundaries(at, region->outputs);
      at = region->end;
    } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
      if (wrappers_->at(at) == nullptr) continue;
      add_wrapper(at, *wrapper, grad);
      if (wrappers_->at(at)->raises) return false;
      at = wrapper->end;
    } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
      if (branch->in_replay) at = branch->end - 1;
    } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
      if (!walk(at + 1, off->end, frame, false)) return false;
      at = off->end - 1;
    } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
      ++n_catches_;
      walk(at + 1, caught->end, frame, grad);
      --n_catches_;
      at = caught->end - 1;
    } else if (const auto* raise = std::get_if<Raise>(&statement)) {
      if (n_catches_ > 0 && raises_in(*raise, false)) return false;
    }
  }
  return true;
}

/// What autograd does not see: a new tensor has no history, a written one that which it had.
void ReferenceGraph::make_without_node(const OpStatement& op) {
  for (std::size_t j = 0; j < op.outputs.size(); ++j) {
    const std::uint32_t output = op.outputs[j].index();
    if (op.writes == op.outputs[j] && !is_made_[output]) continue;
    const bool is_known = j < op.were.size() && is_made_[op.were[j].index()];
    made_by_[output] = is_known ? made_by_[op.were[j].index()] : Edge{none, 0, std::nullopt};
    is_made_[output] = true;
  }
}

void ReferenceGraph::make(ValueId value, std::uint32_t node, std::uint32_t output) {
  made_by_[value.index()] = {node, output, std::nullopt};
  is_made_[value.index()] = true;
}

ReferenceGraph::Edge ReferenceGraph::edge_to(ValueId value) const {
  if (!program_->values[value].requires_grad) return {};
  if (is_made_[value.index()]) return made_by_[value.index()];
  return {none, 0, value};
}

/// What the body saves is no business of the frame's; a boundary's save is.
void ReferenceGraph::add_wrapper(std::size_t at, const WrapperBegin& wrapper, bool grad) {
  const ReferenceWrapper& call = *wrappers_->at(at);
  excluded_in_ = call.frame;
  const bool returns = walk(at + 1, wrapper.end, no_frame, grad);
  excluded_in_ = no_frame;
  if (returns) add_boundaries(at, wrapper.outputs);
}

void ReferenceGraph::add_boundaries(std::size_t at, const std::vector<ValueId>& outputs) {
  const ReferenceWrapper& call = *wrappers_->at(at);
  for (std::size_t leaf = 0; leaf < outputs.size(); ++leaf) {
    if (!call.has_boundary[leaf]) continue;
    Node node;
    node.statement = at;
    node.frame = call.frame;
    node.leaf = leaf;
    node.edges = {edge_to(outputs[leaf])};
    node.has_saves = true;
    nodes_.push_back(std::move(node));
    make(outputs[leaf], static_cast<std::uint32_t>(nodes_.size()) - 1, 0);
  }
}

void ReferenceGraph::add_op(std::size_t at, const OpStatement& op, std::size_t frame) {
  Node node;
  node.statement = at;
  node.frame = frame;
  node.excluded_in = excluded_in_;
  node.has_saves = !op.saves.empty();
  bool leads_anywhere = node.has_saves;
  for (const ValueId input : op.inputs) {
    node.edges.push_back(edge_to(input));
    leads_anywhere |= node.edges.back().node != none || node.edges.back().leaf;
  }
  const std::uint32_t index = leads_anywhere ? static_cast<std::uint32_t>(nodes_.size()) : none;
  if (leads_anywhere) nodes_.push_back(std::move(node));
  for (std::uint32_t j = 0; j < op.outputs.size(); ++j)
    make(op.outputs[j], program_->values[op.outputs[j]].floating ? index : none, j);
}

void ReferenceGraph::add_reentrant(std::size_t at, const RegionBegin& region) {
  Node node;
  node.statement = at;
  bool requires_grad = false;
  for (const ValueId input : region.inputs) {
    node.edges.push_back(edge_to(input));
    requires_grad |= node.edges.back().node != none || node.edges.back().leaf;
  }
  node.has_saves = true;
  const std::uint32_t index = requires_grad ? static_cast<std::uint32_t>(nodes_.size()) : none;
  if (requires_grad) nodes_.push_back(std::move(node));
  for (std::uint32_t j = 0; j < region.outputs.size(); ++j) {
    const bool is_lost =
        program_->values[region.outputs[j]].in_container && !rules_->tracks_nested_outputs;
    make(region.outputs[j], is_lost ? none : index, j);
  }
}

std::vector<bool> ReferenceGraph::running(const std::vector<ValueId>& leaves) const {
  std::vector<bool> runs(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto is_wanted = [&](const Edge& edge) {
      if (edge.node != none) return static_cast<bool>(runs[edge.node]);
      return edge.leaf && std::find(leaves.begin(), leaves.end(), *edge.leaf) != leaves.end();
    };
    const std::vector<Edge>& edges = nodes_[i].edges;
    runs[i] = nodes_[i].is_reached &&
              (leaves.empty() || std::any_of(edges.begin(), edges.end(), is_wanted));
  }
  return runs;
}

}  // namespace remat
