#include <algorithm>

#include "model/op_saves.hpp"
#include "sim/rank.hpp"

// What requires grad in a run where that is not what the program says: a recompute boundary makes
// it so for what passes it (protocols.md P4, A13), a served output may have lost it.

namespace remat {

bool Rank::requires_grad(const Walk& walk, ValueId value) const {
  return value_of(value).requires_grad != (walk.flipped.count(value.index()) != 0);
}

void Rank::set_requires_grad(Walk& walk, ValueId value, bool requires_grad) const {
  const bool is_flipped =
      value_of(value).floating && requires_grad != value_of(value).requires_grad;
  if (is_flipped) {
    walk.flipped.insert(value.index());
  } else {
    walk.flipped.erase(value.index());
  }
}

/// In a replay, what stands for the history that a tensor from outside had in forward: a node that
/// leads nowhere. No backward runs it, so it takes no place in their order.
NodeRef Rank::history_of(const Walk& walk, ValueId value) {
  if (!walk.grad || !value_of(value).floating || !requires_grad(walk, value)) return {};
  NodeRef ref = tape_.make(0);
  tape_[ref.index()].n_outputs = 1;
  return ref;
}

/// Whether the op gets a node and what it saves; `own` holds the saves where they are not those of
/// the program.
Taped Rank::taped(const Walk& walk, const OpStatement& op, std::vector<Save>& own) const {
  const auto is_flipped = [&](ValueId input) { return walk.flipped.count(input.index()) != 0; };
  const bool is_as_written = walk.flipped.empty() || op.writes ||
                             std::none_of(op.inputs.begin(), op.inputs.end(), is_flipped);
  if (is_as_written) return {op.makes_node && walk.grad, op.saves};
  const auto requires_it = [&](ValueId input) { return requires_grad(walk, input); };
  const bool makes_node = op.kind->differentiable && walk.grad &&
                          std::any_of(op.inputs.begin(), op.inputs.end(), requires_it);
  if (makes_node) own = saves_by_table(op, requires_it);
  return {makes_node, own};
}

void Rank::note_grad_of_outputs(Walk& walk, const OpStatement& op, bool makes_node) const {
  if (walk.flipped.empty() || op.writes) return;
  for (std::size_t j = 0; j < op.outputs.size(); ++j) {
    const bool is_part = j == 0 || op.kind->outputs_are_parts;
    set_requires_grad(walk, op.outputs[j], makes_node && is_part);
  }
}

}  // namespace remat
