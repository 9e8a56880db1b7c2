#include <fmt/format.h>

#include <utility>

#include "sim/graph_task.hpp"
#include "sim/rank.hpp"

// The backward of a reentrant region: a whole replay, then a backward inside it (P2).

namespace remat {

Flow Rank::run_reentrant_node(GraphTask& task, std::size_t place) {
  Node& node = tape_[task.nodes[place].index()];
  if (task.targets) {
    return fail("E-USER", "builtins.RuntimeError",
                fmt::format("{}: reentrant checkpoint is incompatible with .grad() and with "
                            "inputs= of backward",
                            described(node.site)));
  }
  const ReentrantCall& call = *node.reentrant;
  Walk walk;
  walk.forward = call.forward;
  walk.is_replay = true;
  walk.flipped = call.flipped;
  walk.is_compiled = call.is_compiled;
  walk.owner = OwnerClass::replay_tmp;
  std::vector<NodeRef> inputs;
  Flow flow = bind_arguments(task, node, walk, inputs);
  if (flow != Flow::done) return flow;
  flow = run_bracketed(walk, {.forward = call.forward,
                              .begin = call.begin,
                              .invocation = call.invocation,
                              .frame = std::nullopt,
                              .key = task.key,
                              .rng_position = call.rng_position});
  if (flow != Flow::done) return flow;
  GraphTask inner;
  flow = run_inner_backward(task, place, walk, inner);
  if (flow != Flow::done) return flow;
  if (!task.retain) release_saves(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const auto captured = inner.captured.find(inputs[i].index());
    if (captured != inner.captured.end() && is_wanted(task, node.edges[i]))
      send(task, node.edges[i], std::move(captured->second));
  }
  return Flow::done;
}

/// The arguments, detached: a node stands for each that wants a gradient, and captures it.
Flow Rank::bind_arguments(GraphTask& task, Node& node, Walk& walk, std::vector<NodeRef>& inputs) {
  const ReentrantCall& call = *node.reentrant;
  const RegionBegin& region = region_of(call.forward, call.begin);
  for (std::size_t i = 0; i < node.saves.size(); ++i) {
    Tensor tensor;
    if (const Flow flow = unpack(node.saves[i], task.key, node.site, tensor); flow != Flow::done)
      return flow;
    Tensor detached{tensor.hold.shared_as(OwnerClass::replay_tmp), region.inputs[i],
                    log_->book().tensor++};
    log_->hook_detach("get_inputs", tensor.id, shown(detached));
    NodeRef input;
    if (value_of(region.inputs[i]).requires_grad) {
      input = tape_.make(tape_.next_seq());
      tape_[input.index()].n_outputs = 1;
    }
    inputs.push_back(input.shared());
    walk.variables.set(region.inputs[i],
                       {std::move(detached), std::move(input), 0, region.inputs[i]});
  }
  for (const Tensor& captured : call.captured) {
    walk.variables.set(captured.value,
                       {captured.shared_as(OwnerClass::replay_tmp), {}, 0, captured.value});
  }
  return Flow::done;
}

/// A graph task of its own, from the replay's outputs.
Flow Rank::run_inner_backward(GraphTask& task, std::size_t place, Walk& walk, GraphTask& inner) {
  const ReentrantCall& call = *tape_[task.nodes[place].index()].reentrant;
  const CallSite site = tape_[task.nodes[place].index()].site;
  const RegionBegin& region = region_of(call.forward, call.begin);
  inner.key = {ReplayKey::Kind::graph_task, log_->book().graph_task++};
  for (std::uint32_t j = 0; j < region.outputs.size(); ++j) {
    Variable* output = find(walk, region.outputs[j]);
    if (output == nullptr || !output->node) continue;
    // No gradient for an output is one of zeros, as a Python function's backward gets it.
    std::optional<Gradient>& arrived = task.arrived_at(place)[j];
    if (!arrived) {
      const std::int64_t bytes = element_bytes_of(value_of(region.outputs[j]).layout);
      arrived = make_gradient("zeros_like", bytes, Ring(), std::array{output->tensor.id});
    }
    inner.roots.push_back({output->node.shared(), output->output, std::move(*arrived)});
  }
  walk.variables.clear();
  if (inner.roots.empty()) {
    return fail("E-GRAD-NONE", "builtins.RuntimeError",
                fmt::format("{}: none of the outputs of the reentrant region has requires_grad",
                            described(site)));
  }
  const auto outer_task = log_->graph_task();
  log_->set_graph_task(inner.key.number);
  find_nodes(inner);
  const Flow flow = run_task(inner);
  log_->set_graph_task(outer_task);
  return flow;
}

}  // namespace remat
