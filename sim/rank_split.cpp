#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/graph_task.hpp"
#include "sim/rank.hpp"

// The two halves of a backward: dx, then dw by groups of parameters (observed-torch.md §3, §8 R7).

namespace remat {

Flow Rank::run_dx(std::optional<std::int64_t> microbatch, std::optional<std::int64_t> group) {
  begin_microbatch(microbatch, Phase::backward_input);
  log_->phase_border(true, true);
  Graph* graph = graph_of(microbatch);
  if (graph == nullptr) {
    return finish_phase(fail("E-GRAD-NONE", "builtins.RuntimeError",
                             now() + ": dx before the micro-batch's forward"));
  }
  const std::vector<ValueId>& inputs = program_->forwards[graph->forward].inputs;
  if (inputs.empty()) return finish_phase(Flow::done);  // a first stage: dw does it all
  GraphTask task = begin_task(group);
  task.retain = true;
  task.targets = inputs;
  Flow flow = add_root(task, *graph, std::nullopt);
  if (flow == Flow::done) {
    find_nodes(task);
    find_groups(*graph, task);
    task.leaves_for_dw = graph;
    flow = run_task(task);
    for (std::size_t place = 0; place < task.nodes.size(); ++place)
      if (task.runs[place]) graph->ran_in_dx.insert(task.nodes[place].index());
    if (flow == Flow::done && !has_dw_at_once(*graph)) flow = detach_root(*graph);
  }
  graph->half_failed = false;
  if (flow != Flow::done) graph->forget_halves();
  return finish_phase(flow);
}

/// After dx the stage's output is cut off its graph: what only led to it dies. A view cannot be.
Flow Rank::detach_root(Graph& graph) {
  const ValueId root = *program_->forwards[graph.forward].root;
  Variable* variable = graph.variables.find(root);
  if (value_of(variable->tensor.value).is_view) {
    return fail("E-USER", "builtins.RuntimeError",
                fmt::format("{}: the output '{}' of the stage is a view: views cannot be detached "
                            "in place",
                            now(), value_of(root).name));
  }
  graph.variables.clear();
  return Flow::done;
}

/// The first of the groups that `shares` names, with all others of them taken into it; a new one
/// where there is none.
ParamGroup& Rank::merged_group(std::vector<ParamGroup>& groups,
                               const std::function<bool(const ParamGroup&)>& shares) {
  auto first = std::find_if(groups.begin(), groups.end(), shares);
  if (first == groups.end()) return groups.emplace_back();
  for (auto other = first + 1; other != groups.end();) {
    if (!shares(*other)) {
      ++other;
      continue;
    }
    first->params.insert(first->params.end(), other->params.begin(), other->params.end());
    first->intermediates.insert(first->intermediates.end(), other->intermediates.begin(),
                                other->intermediates.end());
    other = groups.erase(other);
  }
  return *first;
}

/// Parameters that meet at the same nodes of dx's own graph belong together; so do those whose
/// meeting points overlap.
void Rank::find_groups(Graph& graph, const GraphTask& dx) {
  std::vector<std::vector<std::size_t>> users(dx.nodes.size());  // place → places that feed on it
  for (std::size_t place = 0; place < dx.nodes.size(); ++place) {
    for (const Edge& edge : tape_[dx.nodes[place].index()].edges)
      if (edge.node) users[*dx.places.find(edge.node.index())].push_back(place);
  }
  for (const ValueId param : program_->parameters) {
    std::vector<std::size_t> open;
    for (std::size_t place = 0; place < dx.nodes.size(); ++place) {
      const std::vector<Edge>& edges = tape_[dx.nodes[place].index()].edges;
      if (std::any_of(edges.begin(), edges.end(),
                      [&](const Edge& edge) { return edge.leaf == param; }))
        open.push_back(place);
    }
    std::vector<std::uint32_t> meets;
    std::vector<bool> seen(dx.nodes.size(), false);
    for (std::size_t next = 0; next < open.size(); ++next) {
      const std::size_t place = open[next];
      if (seen[place]) continue;
      seen[place] = true;
      if (dx.runs[place]) {
        meets.push_back(dx.nodes[place].index());
      } else {
        open.insert(open.end(), users[place].begin(), users[place].end());
      }
    }
    if (meets.empty()) continue;
    const auto shares = [&](const ParamGroup& group) {
      return std::any_of(meets.begin(), meets.end(), [&](std::uint32_t node) {
        return std::find(group.intermediates.begin(), group.intermediates.end(), node) !=
               group.intermediates.end();
      });
    };
    ParamGroup& group = merged_group(graph.groups, shares);
    group.params.push_back(param);
    for (const std::uint32_t node : meets) {
      if (std::find(group.intermediates.begin(), group.intermediates.end(), node) !=
          group.intermediates.end())
        continue;
      group.intermediates.push_back(node);
      graph.held.emplace_back(tape_, node);
    }
  }
}

/// From a loss, where the rank may tell by its shape, dw is asked for like dx.
bool Rank::has_dw_at_once(const Graph& graph) const {
  const std::optional<ValueId> root = program_->forwards[graph.forward].root;
  return !options_.dw_task_per_group ||
         (options_.loss_has_dw_at_once && root && value_of(*root).layout.shape.empty());
}

/// One task for all parameters, from the stage's output.
Flow Rank::run_dw_at_once(Graph& graph, std::optional<std::int64_t> group) {
  GraphTask task = begin_task(group);
  task.targets = program_->parameters;
  if (const Flow flow = add_root(task, graph, std::nullopt); flow != Flow::done) return flow;
  find_nodes(task);
  return run_task(task);
}

Flow Rank::run_dw(std::optional<std::int64_t> microbatch, std::optional<std::int64_t> group_key) {
  Graph* graph = graph_of(microbatch);
  if (graph != nullptr && program_->forwards[graph->forward].inputs.empty())
    return run_backward(microbatch, false, group_key, {}, std::nullopt);
  begin_microbatch(microbatch, Phase::backward_weight);
  log_->phase_border(true, false);
  if (graph == nullptr) {
    return finish_phase(fail("E-GRAD-NONE", "builtins.RuntimeError",
                             now() + ": dw before the micro-batch's forward"));
  }
  if (has_dw_at_once(*graph)) return finish_phase(run_dw_at_once(*graph, group_key));
  if (graph->half_failed) {
    return finish_phase(fail("E-USER", "builtins.KeyError",
                             now() + ": dw after a half that failed, which left it no groups of "
                                     "parameters"));
  }
  const std::vector<ParamGroup> groups = std::exchange(graph->groups, {});
  Flow flow = Flow::done;
  for (const ParamGroup& group : groups) {
    GraphTask task = begin_task(group_key);
    task.targets = group.params;
    if (options_.dw_counts_once) task.beyond = &graph->ran_in_dx;
    for (const std::uint32_t node : group.intermediates) {
      for (std::uint32_t j = 0; j < tape_[node].n_outputs; ++j) {
        const auto left = graph->left_by_dx.find({node, j});
        if (left == graph->left_by_dx.end()) continue;
        task.roots.push_back({NodeRef(tape_, node), j, std::move(left->second)});
        graph->left_by_dx.erase(left);
      }
    }
    find_nodes(task);
    flow = run_task(task);
    if (flow != Flow::done) break;
  }
  graph->left_by_dx.clear();
  graph->held.clear();
  if (flow != Flow::done) graph->forget_halves();
  return finish_phase(flow);
}

}  // namespace remat
