#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "model/op_values.hpp"
#include "sim/graph_task.hpp"
#include "sim/offloader.hpp"
#include "sim/rank.hpp"

// Graph tasks: which nodes run, what they unpack, where their gradients go.

namespace remat {
namespace {

std::int64_t bytes_of(const ProgramValue& value) {
  return element_bytes_of(value.layout);
}

}  // namespace

Duration backward_cost(const OpStatement& op, std::size_t n_gradients) {
  if (!op.gradient_cost) return op.cost;
  return {saturated(static_cast<WideInteger>(op.gradient_cost->ns) *
                    static_cast<WideInteger>(n_gradients))};
}

Flow Rank::finish_phase(Flow flow) {
  log_->set_graph_task(std::nullopt);
  for (const auto& [leaf, value] : phase_grads_) {
    if (value == Ring()) continue;  // zeros change nothing, whether somebody makes them or not
    contributions_.push_back({ValueId(leaf), value});
    log_->grad(value_of(ValueId(leaf)).name, value);
  }
  phase_grads_.clear();
  if (flow == Flow::failed) log_error();
  log_->phase_border(false, std::nullopt);
  log_->set_phase(Phase::setup);
  return flow;
}

Rank::GraphTask Rank::begin_task(std::optional<std::int64_t> group) {
  GraphTask task;
  task.key = group ? ReplayKey{ReplayKey::Kind::group, *group}
                   : ReplayKey{ReplayKey::Kind::graph_task, log_->book().graph_task};
  log_->set_graph_task(log_->book().graph_task++);
  return task;
}

Flow Rank::run_backward(std::optional<std::int64_t> microbatch, bool retain,
                        std::optional<std::int64_t> group, const std::vector<ValueId>& wrt,
                        std::optional<ValueId> root) {
  begin_microbatch(microbatch, Phase::backward);
  log_->phase_border(true, retain);
  Graph* graph = graph_of(microbatch);
  if (graph == nullptr) {
    return finish_phase(fail("E-GRAD-NONE", "builtins.RuntimeError",
                             now() + ": backward before the micro-batch's forward"));
  }
  GraphTask task = begin_task(group);
  task.retain = retain;
  if (!wrt.empty()) task.targets = wrt;
  Flow flow = add_root(task, *graph, root);
  if (flow == Flow::done) {
    find_nodes(task);
    flow = run_task(task);
  }
  return finish_phase(flow);
}

Flow Rank::add_root(GraphTask& task, Graph& graph, std::optional<ValueId> root) {
  if (!root) root = program_->forwards[graph.forward].root;
  Variable* variable = root ? graph.variables.find(*root) : nullptr;
  if (variable == nullptr || !variable->node) {
    return fail("E-GRAD-NONE", "builtins.RuntimeError",
                now() + ": element 0 of tensors does not require grad and does not have a grad_fn");
  }
  task.roots.push_back({variable->node.shared(), variable->output,
                        make_gradient("ones_like", bytes_of(value_of(*root)), Ring(1),
                                      std::array{variable->tensor.id})});
  return Flow::done;
}

void Rank::find_nodes(GraphTask& task) {
  std::vector<std::uint32_t> open;
  FlatMap<std::size_t> seen;
  const auto meet = [&](std::uint32_t node) {
    if (seen.contains(node)) return;
    seen[node] = 0;
    open.push_back(node);
  };
  for (const GraphTask::Root& root : task.roots)
    meet(root.node.index());
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    task.nodes.emplace_back(tape_, node);
    for (const Edge& edge : tape_[node].edges)
      if (edge.node && !is_beyond(task, edge)) meet(edge.node.index());
  }
  std::sort(task.nodes.begin(), task.nodes.end(), [&](const NodeRef& a, const NodeRef& b) {
    return tape_[a.index()].seq > tape_[b.index()].seq;
  });
  for (std::size_t place = 0; place < task.nodes.size(); ++place)
    task.places[task.nodes[place].index()] = place;
  // Oldest first: whether a node leads to a leaf that is asked for follows from its edges.
  task.runs.assign(task.nodes.size(), !task.targets);
  task.first_arrived.reserve(task.nodes.size() + 1);
  std::size_t n_outputs = 0;
  for (const NodeRef& node : task.nodes) {
    task.first_arrived.push_back(n_outputs);
    n_outputs += tape_[node.index()].n_outputs;
  }
  task.first_arrived.push_back(n_outputs);
  task.arrived.resize(n_outputs);
  for (std::size_t place = task.nodes.size(); place-- > 0;) {
    const Node& node = tape_[task.nodes[place].index()];
    if (!task.targets) continue;
    task.runs[place] = std::any_of(node.edges.begin(), node.edges.end(),
                                   [&](const Edge& edge) { return is_wanted(task, edge); });
  }
}

bool Rank::is_beyond(const GraphTask& task, const Edge& edge) {
  return task.beyond != nullptr && task.beyond->contains(edge.node.index());
}

bool Rank::is_wanted(const GraphTask& task, const Edge& edge) {
  if (edge.node) {
    return !is_beyond(task, edge) && task.runs[*task.places.find(edge.node.index())];
  }
  if (!edge.leaf) return false;
  return !task.targets ||
         std::find(task.targets->begin(), task.targets->end(), *edge.leaf) != task.targets->end();
}

Flow Rank::run_task(GraphTask& task) {
  const bool outer = std::exchange(graph_is_kept_, task.retain);
  const Flow flow = run_nodes(task);
  graph_is_kept_ = outer;
  return flow;
}

Flow Rank::run_nodes(GraphTask& task) {
  for (GraphTask::Root& root : task.roots) {
    const std::size_t place = *task.places.find(root.node.index());
    add_gradient(task.arrived_at(place)[root.output], std::move(root.gradient));
  }
  for (std::size_t place = 0; place < task.nodes.size(); ++place) {
    if (!task.runs[place]) continue;
    if (const Flow flow = run_node(task, place); flow != Flow::done) return flow;
    for (std::optional<Gradient>& gradient : task.arrived_at(place))
      gradient.reset();
  }
  return Flow::done;
}

Flow Rank::run_node(GraphTask& task, std::size_t place) {
  const std::uint32_t index = task.nodes[place].index();
  Node& node = tape_[index];
  if (node.op == nullptr && !node.reentrant &&
      !node.is_boundary) {  // it stands for a tensor whose gradient is wanted
    std::optional<Gradient>& arrived = task.arrived_at(place)[0];
    if (arrived) task.captured[index] = std::move(*arrived);
    return Flow::done;
  }
  if (task.leaves_for_dw != nullptr) {
    const auto held = [&](const NodeRef& ref) { return ref.index() == index; };
    const std::vector<NodeRef>& wanted = task.leaves_for_dw->held;
    if (std::any_of(wanted.begin(), wanted.end(), held)) {
      for (std::uint32_t j = 0; j < node.n_outputs; ++j) {
        const std::optional<Gradient>& arrived = task.arrived_at(place)[j];
        if (arrived) task.leaves_for_dw->left_by_dx[{index, j}] = shared(*arrived);
      }
    }
  }
  if (offloader_ != nullptr && node.offload_group)
    offloader_->enter_backward(microbatch_, *node.offload_group);
  const std::string_view name = node.op != nullptr ? std::string_view(node.op->name)
                                : node.is_boundary ? std::string_view("RecomputeBoundary")
                                                   : std::string_view("CheckpointFunction");
  log_->node_begin(name, node.seq, task.retain);
  if (node.released) {
    return fail("E-TWICE", "builtins.RuntimeError",
                fmt::format("{} of {}: trying to backward through the graph a second time, its "
                            "saved tensors have been freed",
                            name, described(node.site)));
  }
  if (node.is_boundary) return run_boundary_node(task, place);
  if (node.reentrant) return run_reentrant_node(task, place);
  return node.op->group ? run_collective_node(task, place) : run_op_node(task, place);
}

/// What passes a boundary is what came; asking for its save is what drives the replay.
Flow Rank::run_boundary_node(GraphTask& task, std::size_t place) {
  Node& node = tape_[task.nodes[place].index()];
  Tensor saved;
  if (const Flow flow = unpack(node.saves[0], task.key, node.site, saved); flow != Flow::done)
    return flow;
  saved.hold.drop();
  if (!task.retain) release_saves(node);
  std::optional<Gradient>& arrived = task.arrived_at(place)[0];
  if (arrived && is_wanted(task, node.edges[0])) send(task, node.edges[0], shared(*arrived));
  return Flow::done;
}

Flow Rank::run_op_node(GraphTask& task, std::size_t place) {
  Node& node = tape_[task.nodes[place].index()];
  if (const Flow flow = raise_in_unpack(node); flow != Flow::done) return flow;
  Tensors saved;
  for (SavedSlot& slot : node.saves) {
    Tensor tensor;
    if (const Flow flow = unpack(slot, task.key, node.site, tensor); flow != Flow::done)
      return flow;
    saved.push_back(std::move(tensor));
  }
  if (const Flow flow = refuse_other_shapes(node, saved); flow != Flow::done) return flow;
  if (offloader_ != nullptr && log_->is_on())
    launch(node.op->name + ".backward", span_of(saved), {});
  Few<std::pair<std::size_t, Gradient>> made;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (!is_wanted(task, node.edges[i])) continue;
    if (auto gradient = input_gradient(node, task.arrived_at(place), i, saved))
      made.emplace_back(i, std::move(*gradient));
  }
  log_->spend(backward_cost(*node.op, made.size()));
  saved.clear();
  if (!task.retain) release_saves(node);
  for (auto& [input, gradient] : made)
    send(task, node.edges[input], std::move(gradient));
  return Flow::done;
}

void Rank::release_saves(Node& node) {
  node.released = !node.saves.empty();
  for (SavedSlot& slot : node.saves)
    release(slot);
  node.saves.clear();
}

/// ∂ output / ∂ input of an op's node, as its kind's polynomial has it.
Ring Rank::derivative(const Node& node, std::size_t output, std::size_t input,
                      const Tensors& saved) const {
  const OpStatement& op = *node.op;
  const ProgramValue& from = value_of(op.inputs[input]);
  const ProgramValue& to = value_of(op.outputs[output]);
  if (from.buffer == to.buffer && !op.writes) return to.constant * inverse(from.constant);
  if (op.kind->makes_view && !op.writes) return {};  // another tensor than the one it looks at
  const auto of_factor = [&](std::uint8_t factor) -> std::optional<Ring> {
    for (std::size_t i = 0; i < node.saves.size(); ++i)
      if (node.saves[i].factor == factor) return element_of(saved[i]);
    return std::nullopt;
  };
  const auto rule = OpValues(*op.kind, op.seed);
  // A write has one result, seen through each tensor that looks at the storage.
  const std::size_t seen = op.writes ? 0 : output;
  // A recorded op may save less than its kind: then the part is a constant of the op's own.
  Ring part = rule.derivative(seen, input, op.inputs.size(), std::cref(of_factor))
                  .value_or(constant_of(op.seed + input));
  if (!op.writes) return part;
  if (writes_a_part(op)) {
    part = part * partial_write(op.seed).new_part;
    if (*op.writes == op.inputs[input]) part += partial_write(op.seed).old_part;
  }
  return part * to.constant * inverse(value_of(op.outputs[0]).constant);
}

std::optional<Gradient> Rank::input_gradient(const Node& node,
                                             std::span<const std::optional<Gradient>> outer,
                                             std::size_t input, const Tensors& saved) {
  Ring sum;
  const Gradient* only = nullptr;
  Few<std::int64_t> ids;
  for (std::size_t j = 0; j < outer.size(); ++j) {
    if (!outer[j]) continue;
    sum += outer[j]->value * derivative(node, j, input, saved);
    ids.push_back(outer[j]->id);
    only = &*outer[j];
  }
  if (only == nullptr) return std::nullopt;
  const OpStatement& op = *node.op;
  for (const Tensor& tensor : saved)
    ids.push_back(tensor.id);
  // Only the trace names what made a gradient.
  const std::string maker = log_->is_on() ? op.name + ".backward" : std::string();
  if (op.kind->makes_view && op.outputs.size() == 1) {
    // The gradient of a view is a view of the gradient.
    Gradient gradient{only->hold.shared_as(OwnerClass::grad), log_->book().tensor++, sum};
    const std::uint32_t storage = gradient.hold.storage();
    log_->backward_op(maker, span_of(ids), gradient.id, ledger_.number(storage),
                      ledger_.bytes(storage));
    return gradient;
  }
  return make_gradient(maker, bytes_of(value_of(op.inputs[input])), sum, span_of(ids));
}

Gradient Rank::shared(const Gradient& gradient) const {
  return {gradient.hold.shared_as(OwnerClass::grad), gradient.id, gradient.value};
}

Gradient Rank::make_gradient(std::string_view maker, std::int64_t bytes, Ring value,
                             std::span<const std::int64_t> inputs) {
  const std::uint32_t storage = ledger_.allocate(bytes, BufferRole::none, maker);
  Gradient gradient{Owned(ledger_, storage, OwnerClass::grad), log_->book().tensor++, value};
  log_->backward_op(maker, inputs, gradient.id, ledger_.number(storage), bytes);
  return gradient;
}

void Rank::send(GraphTask& task, const Edge& edge, Gradient gradient) {
  if (edge.node) {
    add_gradient(task.arrived_at(*task.places.find(edge.node.index()))[edge.output],
                 std::move(gradient));
  } else {
    reach_leaf(*edge.leaf, std::move(gradient));
  }
}

void Rank::add_gradient(std::optional<Gradient>& to, Gradient gradient) {
  if (!to || has(RankFault::gradients_overwritten)) {
    to = std::move(gradient);
    return;
  }
  const std::int64_t bytes = ledger_.bytes(to->hold.storage());
  to =
      make_gradient("grad_sum", bytes, to->value + gradient.value, std::array{to->id, gradient.id});
}

void Rank::reach_leaf(ValueId leaf, Gradient gradient) {
  phase_grads_[leaf.index()] += gradient.value;
  const std::int64_t key = leaf_key(leaf.index(), program_->buffers[value_of(leaf).buffer].role);
  const auto known = leaf_grads_.find(key);
  if (known == leaf_grads_.end()) {
    log_->role_of_grad(ledger_.number(gradient.hold.storage()));
    leaf_grads_.emplace(key, std::move(gradient));
    return;
  }
  known->second.value += gradient.value;
  ledger_.bump_version(known->second.hold.storage());
  log_->mutate(known->second.id, ledger_.number(known->second.hold.storage()));
}

}  // namespace remat
