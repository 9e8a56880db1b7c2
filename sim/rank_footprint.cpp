#include "model/flat_map.hpp"
#include "sim/rank.hpp"

// What a phase would touch: for a chooser that wants to know which events may trade places.

namespace remat {

void Rank::footprint(const PhaseStep& step, Footprint& footprint) const {
  const bool is_border =
      step.kind == PhaseStep::Kind::step_begin || step.kind == PhaseStep::Kind::step_end;
  add_leaves(footprint, step.kind == PhaseStep::Kind::update || is_border);
  const auto found = graphs_.find(step.microbatch.value_or(-1));
  if (found != graphs_.end()) add_graph(found->second, footprint);
  // One generator, one list of gradients: phases that use them come one after the other.
  footprint.channels.push_back({0, true});
}

void Rank::add_leaves(Footprint& footprint, bool parameters_are_written) const {
  for (const auto& [key, tensor] : leaves_) {
    const auto number = static_cast<std::uint64_t>(ledger_.number(tensor.hold.storage()));
    footprint.storages.push_back({number, parameters_are_written});
  }
  for (const auto& [key, gradient] : leaf_grads_) {
    const auto number = static_cast<std::uint64_t>(ledger_.number(gradient.hold.storage()));
    footprint.storages.push_back({number, true});
  }
}

/// What the graph's variables and the slots of its nodes hold.
void Rank::add_graph(const Graph& graph, Footprint& footprint) const {
  std::vector<std::uint32_t> open;
  IdSet seen;
  const auto meet = [&](const NodeRef& node) {
    if (!node || seen.contains(node.index())) return;
    seen.insert(node.index());
    open.push_back(node.index());
  };
  graph.variables.each([&](const Variable& variable) {
    const std::uint32_t storage = variable.tensor.hold.storage();
    footprint.storages.push_back({static_cast<std::uint64_t>(ledger_.number(storage)), true});
    meet(variable.node);
  });
  for (const NodeRef& held : graph.held)
    meet(held);
  while (!open.empty()) {
    const Node& node = tape_[open.back()];
    open.pop_back();
    for (const SavedSlot& slot : node.saves) {
      if (slot.where == SavedSlot::Where::kept) {
        const std::int64_t number = ledger_.number(slot.kept.hold.storage());
        footprint.storages.push_back({static_cast<std::uint64_t>(number), false});
      } else if (slot.where == SavedSlot::Where::holder) {
        const auto frame = static_cast<std::uint64_t>(frames_[slot.frame]->number);
        footprint.slots.push_back({(frame << 32U) | slot.index, true});
      }
    }
    for (const Edge& edge : node.edges)
      meet(edge.node);
  }
}

RankContents Rank::contents() const {
  RankContents contents{.storages = ledger_.n_alive(),
                        .nodes = tape_.n_alive(),
                        .frames = frames_.size() - free_frames_.size(),
                        .tables = ledger_.n_places() + tape_.n_places() + frames_.size()};
  for (const std::unique_ptr<CheckpointFrame>& frame : frames_) {
    if (frame == nullptr) continue;
    contents.holders += frame->n_alive;
    contents.input_slots += frame->n_input_slots_alive;
    for (const auto& [name, calls] : frame->wrappers)
      contents.entries += calls.entries.size();
  }
  return contents;
}

}  // namespace remat
