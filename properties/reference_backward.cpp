#include "properties/reference_backward.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "model/units.hpp"

namespace remat {

/// One graph task, node by node: gradients on their way, slots that a replay has filled.
class BackwardWalk {
 public:
  BackwardWalk(const ReferenceForward& forward, const ReferenceGraph& graph, std::int64_t live,
               bool retain, ReferenceBackward& made)
      : forward_(&forward),
        program_(forward.program_),
        graph_(&graph),
        retain_(retain),
        made_(&made) {
    live_.add(live);
  }

  void run(const std::vector<ValueId>& leaves) {
    runs_ = graph_->running(leaves);
    arrived_.resize(graph_->nodes().size());
    for (std::size_t i = 0; i < arrived_.size(); ++i)
      arrived_[i].resize(n_outputs(graph_->nodes()[i]));
    for (const ReferenceGraph::Edge& root : graph_->roots()) {
      if (root.node != ReferenceGraph::none) send(root, new_gradient(bytes_of_output(root)));
    }
    for (std::size_t i = arrived_.size(); i-- > 0;) {
      if (runs_[i]) run_node(i, leaves);
      if (graph_->nodes()[i].is_reached) drop_arrived(i);
    }
  }

 private:
  using Gradient = std::optional<std::size_t>;  // an index into storages_

  const ProgramValue& value(ValueId id) const { return program_->values[id]; }
  std::int64_t bytes_of(ValueId id) const { return element_bytes_of(value(id).layout); }
  const OpStatement* op_of(const ReferenceGraph::Node& node) const {
    return std::get_if<OpStatement>(&statements_of(*program_)[node.statement]);
  }
  const std::vector<ValueId>& outputs_of(const ReferenceGraph::Node& node) const {
    if (node.leaf) return forward_->wrappers_.at(node.statement)->leaves[*node.leaf];
    const OpStatement* op = op_of(node);
    return op != nullptr ? op->outputs : forward_->region(node.statement).outputs;
  }
  const std::vector<ValueId>& inputs_of(const ReferenceGraph::Node& node) const {
    if (node.leaf) return outputs_of(node);
    const OpStatement* op = op_of(node);
    return op != nullptr ? op->inputs : forward_->region(node.statement).inputs;
  }
  std::size_t n_outputs(const ReferenceGraph::Node& node) const { return outputs_of(node).size(); }
  std::int64_t bytes_of_output(const ReferenceGraph::Edge& edge) const {
    return bytes_of(outputs_of(graph_->nodes()[edge.node])[edge.output]);
  }

  void grow(std::int64_t bytes) {
    live_.add(bytes);
    made_->peak_bytes = std::max(made_->peak_bytes, live_.count());
  }
  Gradient new_gradient(std::int64_t bytes) {
    storages_.push_back({bytes, 1});
    grow(bytes);
    return storages_.size() - 1;
  }
  void drop(Gradient& gradient) {
    if (gradient && --storages_[*gradient].n_holds == 0) live_.subtract(storages_[*gradient].bytes);
    gradient.reset();
  }
  void drop_arrived(std::size_t node) {
    for (Gradient& gradient : arrived_[node])
      drop(gradient);
  }

  void send(const ReferenceGraph::Edge& edge, Gradient gradient) {
    if (edge.node == ReferenceGraph::none && !is_captured(*edge.leaf)) {
      drop(gradient);  // a leaf's: it has a role of its own and is not counted
      return;
    }
    Gradient& to = edge.node == ReferenceGraph::none ? captured_[edge.leaf->index()]
                                                     : arrived_[edge.node][edge.output];
    if (!to) {
      to = gradient;
      return;
    }
    // A view's gradient has the size of the view: either may be the one that came first.
    Gradient sum = new_gradient(std::max(storages_[*to].bytes, storages_[*gradient].bytes));
    drop(to);
    drop(gradient);
    to = sum;
  }

  void run_node(std::size_t at, const std::vector<ValueId>& leaves) {
    const ReferenceGraph::Node& node = graph_->nodes()[at];
    const OpStatement* op = op_of(node);
    if (op == nullptr && !node.leaf) {
      run_reentrant(at);
    } else if (node.frame != ReferenceGraph::no_frame && node.has_saves) {
      ask(node.frame);
    }
    const bool passes_on =
        node.leaf || (op != nullptr && op->kind->makes_view && op->outputs.size() == 1);
    std::vector<std::pair<const ReferenceGraph::Edge*, Gradient>> made;
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      const ReferenceGraph::Edge& edge = node.edges[i];
      const bool is_wanted =
          edge.node != ReferenceGraph::none
              ? runs_[edge.node]
              : edge.leaf && (leaves.empty() ||
                              std::find(leaves.begin(), leaves.end(), *edge.leaf) != leaves.end());
      if (!is_wanted || !any_arrived(at)) continue;
      made.emplace_back(&edge,
                        passes_on ? shared(*arrived_[at][0]) : new_gradient(bytes_to(node, i)));
    }
    if (op != nullptr && node.frame != ReferenceGraph::no_frame) release_slots(node, *op);
    const bool empties = !retain_ || forward_->rules_.remat;  // what was read is handed out
    if (op != nullptr && node.excluded_in != ReferenceGraph::no_frame && empties) {
      each_slot(node, *op, [&](ValueId saved) { release(node.excluded_in, saved); });
    }
    for (const auto& [edge, gradient] : made)
      send(*edge, gradient);
  }

  /// Of what an input gets: through a view inside a reentrant region it may be larger than that.
  std::int64_t bytes_to(const ReferenceGraph::Node& node, std::size_t input) const {
    const ValueId to = inputs_of(node)[input];
    const auto brought = brought_.find(to.index());
    const bool is_reentrant = op_of(node) == nullptr && !node.leaf;
    const std::int64_t least = is_reentrant && brought != brought_.end() ? brought->second : 0;
    return std::max(bytes_of(to), least);
  }
  bool any_arrived(std::size_t at) const {
    return std::any_of(arrived_[at].begin(), arrived_[at].end(),
                       [](const Gradient& gradient) { return gradient.has_value(); });
  }
  Gradient shared(std::size_t storage) {
    ++storages_[storage].n_holds;
    return storage;
  }

  /// A slot of the frame is asked for: the first time in this task, its region is replayed.
  void ask(std::size_t frame) {
    if (!replayed_.insert(frame).second) return;
    const ReferenceForward::Replay& replay = forward_->replays_.at(frame);
    if (!replay.fetched.empty()) ask(replay.outer);
    made_->ran.insert(made_->ran.end(), replay.ran.begin(), replay.ran.end());
    made_->peak_bytes =
        std::max(made_->peak_bytes, saturated_sum(live_.count(), replay.peak_bytes));
    for (const ValueId packed : replay.packed)
      hold(frame, packed);
    for (std::size_t i = 0; i < graph_->nodes().size(); ++i) {
      const ReferenceGraph::Node& node = graph_->nodes()[i];
      if (!node.is_reached || node.excluded_in != frame) continue;
      const bool is_handed_out = forward_->rules_.remat && runs_[i];
      each_slot(node, *op_of(node), [&](ValueId saved) {
        hold(frame, saved);
        if (retain_ && !is_handed_out) leave(frame, saved);
      });
    }
    for (const ValueId argument : replay.fetched)
      release(replay.outer, argument);
  }

  void hold(std::size_t frame, ValueId filled) {
    const BufferId buffer = value(filled).buffer;
    const std::size_t maker = maker_of(frame, buffer);
    if (maker == ReferenceGraph::no_frame) return;
    if (slots_on_[{maker, buffer.index()}]++ == 0) grow(program_->buffers[buffer].bytes);
  }
  /// The slot is still full when the task is over.
  void leave(std::size_t frame, ValueId filled) {
    const BufferId buffer = value(filled).buffer;
    const std::size_t maker = maker_of(frame, buffer);
    if (maker == ReferenceGraph::no_frame || !left_.insert({maker, buffer.index()}).second) return;
    made_->left_bytes = saturated_sum(made_->left_bytes, program_->buffers[buffer].bytes);
  }
  /// What the op of an excluded region saved and did not keep.
  template <typename Visit>
  void each_slot(const ReferenceGraph::Node& node, const OpStatement& op, Visit visit) const {
    for (std::size_t i = 0; i < op.saves.size(); ++i)
      if (forward_->wrappers_.is_slot(node.statement, i)) visit(op.saves[i].value);
  }

  /// Whose replay made the bytes that a slot of the frame was filled with: its own, or that of a
  /// frame around it, whose slot was the region's argument. No frame where forward kept them.
  std::size_t maker_of(std::size_t frame, BufferId buffer) const {
    for (; frame != ReferenceGraph::no_frame; frame = forward_->replays_.at(frame).outer) {
      const ReferenceForward::Replay& replay = forward_->replays_.at(frame);
      const auto lies_there = [&](ValueId argument) { return value(argument).buffer == buffer; };
      if (replay.is_made[buffer.index()]) return frame;
      if (std::none_of(replay.fetched.begin(), replay.fetched.end(), lies_there))
        return ReferenceGraph::no_frame;
    }
    return ReferenceGraph::no_frame;
  }

  void release(std::size_t frame, ValueId packed) {
    const BufferId buffer = value(packed).buffer;
    const auto found = slots_on_.find({maker_of(frame, buffer), buffer.index()});
    if (found == slots_on_.end() || found->second == 0) return;
    if (--found->second == 0) live_.subtract(program_->buffers[buffer].bytes);
  }
  void release_slots(const ReferenceGraph::Node& node, const OpStatement& op) {
    for (const Save& save : op.saves)
      release(node.frame, save.value);
  }

  /// P2: the whole body again, and a backward inside it.
  void run_reentrant(std::size_t at) {
    const ReferenceGraph::Node& node = graph_->nodes()[at];
    const RegionBegin& region = forward_->region(node.statement);
    const ReferenceWalk replay = reference_walk(*program_, forward_->rules_, forward_->wrappers_,
                                                {.begin = node.statement + 1,
                                                 .end = region.end,
                                                 .is_replay = true,
                                                 .saves = ReferenceSaves::kept});
    made_->ran.insert(made_->ran.end(), replay.ran.begin(), replay.ran.end());
    made_->peak_bytes =
        std::max(made_->peak_bytes, saturated_sum(live_.count(), replay.peak_bytes));
    // What the body returned is there until the inner backward has its roots: a gradient of zeros
    // for each output that none has reached.
    std::int64_t at_start = saturated_sum(live_.count(), replay.kept_bytes);
    for (std::size_t j = 0; j < region.outputs.size(); ++j) {
      const BufferId buffer = value(region.outputs[j]).buffer;
      if (replay.is_made[buffer.index()])
        at_start = saturated_sum(at_start, program_->buffers[buffer].bytes);
      if (!arrived_[at][j]) at_start = saturated_sum(at_start, bytes_of(region.outputs[j]));
    }
    made_->peak_bytes = std::max(made_->peak_bytes, at_start);
    const ReferenceGraph inside(*program_, forward_->rules_, forward_->wrappers_,
                                node.statement + 1, region.end, region.outputs);
    BackwardWalk inner(*forward_, inside, saturated_sum(live_.count(), replay.kept_bytes), retain_,
                       *made_);
    inner.arguments_ = &region.inputs;
    inner.run({});
    brought_.clear();
    for (const auto& [leaf, gradient] : inner.captured_)
      if (gradient) brought_[leaf] = inner.storages_[*gradient].bytes;
  }

  bool is_captured(ValueId leaf) const {
    return arguments_ != nullptr &&
           std::find(arguments_->begin(), arguments_->end(), leaf) != arguments_->end();
  }

  struct Storage {
    std::int64_t bytes = 0;
    std::uint32_t n_holds = 0;
  };

  const ReferenceForward* forward_;
  const Program* program_;
  const ReferenceGraph* graph_;
  ByteTotal live_;
  bool retain_;
  ReferenceBackward* made_;
  std::vector<bool> runs_;                      // by node
  std::vector<std::vector<Gradient>> arrived_;  // by node and output
  std::vector<Storage> storages_;
  std::set<std::size_t> replayed_;
  // A reentrant region's arguments, and what has reached them: it waits until the inner backward is
  // over.
  const std::vector<ValueId>* arguments_ = nullptr;
  std::map<std::uint32_t, Gradient> captured_;
  std::map<std::uint32_t, std::int64_t> brought_;  // by argument of the region that ran last
  // Frame and buffer → how many filled slots lie on it.
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint32_t> slots_on_;
  std::set<std::pair<std::size_t, std::uint32_t>> left_;  // of those, what stays
};

const ReferenceBackward& ReferenceForward::backward(const std::vector<ValueId>& leaves,
                                                    bool retain) const {
  std::vector<std::uint32_t> key;
  key.reserve(leaves.size());
  for (const ValueId leaf : leaves)
    key.push_back(leaf.index());
  const auto [found, is_new] = backwards_.try_emplace({retain, key});
  if (is_new) BackwardWalk(*this, graph_, 0, retain, found->second).run(leaves);
  return found->second;
}

}  // namespace remat
