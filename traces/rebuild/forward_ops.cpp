#include <algorithm>

#include "model/op_values.hpp"
#include "traces/rebuild/forward_builder.hpp"

// Ops of a forward, and which of them a saved tensor belongs to.

namespace remat {

bool ForwardBuilder::wants_grad(const OpStatement& op) const {
  if (!op.kind->differentiable) return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId input) {
    const ProgramValue& value = program_->values[input];
    return value.floating && value.requires_grad;
  });
}

/// Inside a region with a frame every save is recorded; outside only where the recorder's hooks
/// were active; inside a reentrant one nothing is saved in forward.
bool ForwardBuilder::shows_saves() const {
  for (std::size_t i = open_.size(); i-- > 0;) {
    const RegionBegin& region = std::get<RegionBegin>(forward_.statements[open_[i].begin]);
    if (region.kind != RegionKind::checkpointed) continue;
    return !region.reentrant;
  }
  return shows_plain_saves_;
}

OpStatement ForwardBuilder::make_op(const EventView& event) {
  OpStatement op;
  op.name = event.text(Field::name);
  const OpKind* kind = find_op_kind(op.name);
  op.kind = kind == nullptr ? &unknown_op_kind() : kind;
  op.seed = op_seed(plain_op_name(op.name), event.text(Field::attrs));
  op.cost = {event.integer(Field::dur_ns).value_or(0)};
  for (std::size_t i = 0; i < event.list_size(Field::inputs); ++i) {
    if (const auto input = tensors_->value_of(event.list_item(Field::inputs, i)))
      op.inputs.push_back(*input);
  }
  return op;
}

void ForwardBuilder::add_outputs(const EventView& event, OpStatement& op) {
  const bool requires_grad = wants_grad(op) || !op.saves.empty();
  for (std::size_t j = 0; j < event.list_size(Field::outputs); ++j) {
    const TensorView output = event.tensor_item(Field::outputs, j);
    std::optional<ValueId> written;
    for (std::size_t i = 0; i < event.list_size(Field::inputs) && !op.writes && j == 0; ++i) {
      if (output.tensor == event.list_item(Field::inputs, i))
        written = tensors_->value_of(event.list_item(Field::inputs, i));
    }
    if (written && is_in_place_name(op.name)) op.writes = written;
    const bool keeps_leaf = op.by_caller && written;
    op.outputs.push_back(tensors_->make(
        output, keeps_leaf ? program_->values[*written].requires_grad : requires_grad));
  }
  if (!op.writes || op.by_caller || op.outputs.empty()) return;
  const auto storage = event.tensor_item(Field::outputs, 0).storage;
  if (!storage) return;
  for (const ValueId seen : tensors_->rebase(*storage, op.outputs[0], requires_grad))
    op.outputs.push_back(seen);
}

/// How many of the pending packs the last op made (R3): its saved outputs, as many as match, then
/// all up to the last one that is no input of the op that comes.
std::size_t ForwardBuilder::n_of_last_op(const OpStatement* next) const {
  if (next == nullptr) return pending_.size();
  std::size_t n = 0;
  if (last_op_) {
    const auto& last = std::get<OpStatement>(forward_.statements[*last_op_]);
    for (const SaveRule& rule : last.kind->saves) {
      if (rule.what != SaveRule::What::output || rule.index >= last.outputs.size()) continue;
      if (n >= pending_.size() || pending_[n].value != last.outputs[rule.index]) break;
      ++n;
    }
  }
  for (std::size_t i = pending_.size(); i-- > n;) {
    const ValueId value = pending_[i].value;
    const bool is_input =
        std::find(next->inputs.begin(), next->inputs.end(), value) != next->inputs.end();
    if (!is_input && copied_.count(value.index()) == 0) return i + 1;
  }
  return n;
}

void ForwardBuilder::give_to_last_op(std::size_t n) {
  if (n == 0 || !last_op_) return;
  auto& last = std::get<OpStatement>(forward_.statements[*last_op_]);
  for (std::size_t i = 0; i < n; ++i) {
    Save save{pending_[i].value, true, Save::no_factor};
    const auto output = std::find(last.outputs.begin(), last.outputs.end(), save.value);
    const auto input = std::find(last.inputs.begin(), last.inputs.end(), save.value);
    if (output != last.outputs.end()) {
      save.factor = save_factor(true, output - last.outputs.begin());
    } else if (input != last.inputs.end()) {
      save.factor = save_factor(false, input - last.inputs.begin());
    }
    last.saves.push_back(save);
  }
  last.makes_node = true;
  for (const ValueId output : last.outputs)
    program_->values[output].requires_grad = program_->values[output].floating;
}

void ForwardBuilder::assign_packs(OpStatement* next) {
  const std::size_t n = n_of_last_op(next);
  give_to_last_op(n);
  std::vector<bool> taken(next == nullptr ? 0 : next->inputs.size(), false);
  for (std::size_t i = n; i < pending_.size(); ++i) {
    Save save{pending_[i].value, false, Save::no_factor};
    const auto copied = copied_.find(save.value.index());
    if (copied != copied_.end()) {
      save.copy_of = copied->second;
      save.factor = 0;
      next->saves.push_back(save);
      continue;
    }
    // Which input it is, where one tensor is several: the kind's own order tells.
    std::size_t best = next->inputs.size();
    for (const SaveRule& rule : next->kind->saves) {
      if (rule.what == SaveRule::What::input && rule.index < next->inputs.size() &&
          best == next->inputs.size() && !taken[rule.index] &&
          next->inputs[rule.index] == save.value)
        best = rule.index;
    }
    for (std::size_t k = 0; k < next->inputs.size() && best == next->inputs.size(); ++k)
      if (!taken[k] && next->inputs[k] == save.value) best = k;
    if (best < next->inputs.size()) {
      taken[best] = true;
      save.factor = save_factor(false, static_cast<std::ptrdiff_t>(best));
    }
    next->saves.push_back(save);
  }
  pending_.clear();
}

}  // namespace remat
