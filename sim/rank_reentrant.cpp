#include <utility>

#include "sim/graph_task.hpp"
#include "sim/rank.hpp"

// The backward of a reentrant region: a whole replay, then a backward inside it (P2).

namespace remat {

Flow Rank::run_reentrant_node(GraphTask& task, std::size_t place) {
  Node& node = tape_[task.nodes[place].index()];
  if (task.targets) {
    return fail("E-USER", "builtins.RuntimeError",
                "reentrant checkpoint is incompatible with .grad() and with inputs= of backward");
  }
  const ReentrantCall& call = *node.reentrant;
  const RegionBegin& region = region_of(call.forward, call.begin);
  Walk walk;
  walk.forward = call.forward;
  walk.is_replay = true;
  walk.owner = OwnerClass::replay_tmp;
  std::vector<NodeRef> inputs;
  for (std::size_t i = 0; i < node.saves.size(); ++i) {
    Tensor tensor;
    if (const Flow flow = unpack(node.saves[i], task.key, tensor); flow != Flow::done) return flow;
    Tensor detached{tensor.hold.shared_as(OwnerClass::replay_tmp), region.inputs[i],
                    next_tensor_++};
    log_->hook_detach("get_inputs", tensor.id, shown(detached));
    NodeRef input;
    if (value_of(region.inputs[i]).requires_grad) {
      input = tape_.make(tape_.next_seq());
      tape_[input.index()].n_outputs = 1;
    }
    inputs.push_back(input.shared());
    walk.variables.set(region.inputs[i], {std::move(detached), std::move(input), 0});
  }
  for (const Tensor& captured : call.captured)
    walk.variables.set(captured.value, {captured.shared_as(OwnerClass::replay_tmp), {}, 0});

  ++replays_[region.name];
  const Phase phase = log_->phase();
  const std::int64_t rng = rng_position_;
  const std::int64_t before = ledger_.live().total;
  log_->push_unit(region.name, call.invocation);
  log_->set_phase(Phase::replay);
  log_->unit_begin(std::nullopt, true, true, true, task.key);
  ledger_.begin_peak();
  const bool restores = region.preserves_rng && options_.preserves_rng;
  if (restores && rng_position_ != call.rng_position) {
    rng_position_ = call.rng_position;
    log_->rng_set(rng_position_);
  }
  Flow flow = run(walk, call.begin + 1, region.end);
  if (restores && rng_position_ != rng) {
    rng_position_ = rng;
    log_->rng_set(rng);
  }
  log_->unit_end(std::nullopt, true, true, true,
                 flow == Flow::done ? std::string_view("return") : std::string_view(error_->type));
  log_->set_phase(phase);
  log_->pop_unit();
  replay_peak_ = std::max(replay_peak_, ledger_.recent_peak() - before);
  if (flow != Flow::done) return flow;

  GraphTask inner;
  inner.key = {ReplayKey::Kind::graph_task, next_task_++};
  for (std::uint32_t j = 0; j < region.outputs.size(); ++j) {
    Variable* output = find(walk, region.outputs[j]);
    if (output == nullptr || !output->node) continue;
    // No gradient for an output is one of zeros, as a Python function's backward gets it.
    std::optional<Gradient>& arrived = task.arrived[place][j];
    if (!arrived) {
      const std::int64_t bytes = element_bytes_of(value_of(region.outputs[j]).layout);
      arrived = make_gradient("zeros_like", bytes, Ring(), {output->tensor.id});
    }
    inner.roots.push_back({output->node.shared(), output->output, std::move(*arrived)});
  }
  walk.variables.clear();
  if (inner.roots.empty()) {
    return fail("E-GRAD-NONE", "builtins.RuntimeError",
                "none of the outputs of the reentrant region has requires_grad");
  }
  const auto outer_task = log_->graph_task();
  log_->set_graph_task(inner.key.number);
  find_nodes(inner);
  flow = run_task(inner);
  log_->set_graph_task(outer_task);
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

}  // namespace remat
