#include <algorithm>
#include <array>

#include "model/op_values.hpp"
#include "traces/rebuild/forward_builder.hpp"

// Ops of a forward, and which of them a saved tensor belongs to.

namespace remat {
namespace {

// Kinds without a row of their own in the table of ops, or with one that leaves this out.
constexpr std::array save_their_first_output = {
    std::string_view("rsqrt"), std::string_view("reciprocal"),
    std::string_view("expm1"), std::string_view("amax"),
    std::string_view("amin"),  std::string_view("linalg_vector_norm")};

/// Outputs that the op's node saves, in their order: by its kind, or by its overload.
std::vector<std::size_t> saved_outputs(const OpStatement& op) {
  const std::string_view name = plain_op_name(op.name);
  const bool is_one_of_them =
      std::find(save_their_first_output.begin(), save_their_first_output.end(), name) !=
      save_their_first_output.end();
  // Of all elements; along a dimension it saves where they are.
  const bool is_of_all = (name == "max" || name == "min") && op.outputs.size() == 1;
  if (is_one_of_them || is_of_all) return {0};
  std::vector<std::size_t> outputs;
  for (const SaveRule& rule : op.kind->saves)
    if (rule.what == SaveRule::What::output) outputs.push_back(rule.index);
  return outputs;
}

}  // namespace

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
    const auto input = tensors_->value_of(event.list_item(Field::inputs, i));
    if (!input) continue;
    tensors_->require_this_forward(*input);
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
    op.outputs.push_back(tensors_->make(output, requires_grad));
  }
  if (!op.writes || op.outputs.empty()) return;
  const auto storage = event.tensor_item(Field::outputs, 0).storage;
  if (!storage) return;
  for (const ValueId seen : tensors_->rebase(*storage, op.outputs[0], requires_grad))
    op.outputs.push_back(seen);
}

/// The first `n` pending packs are what the op's kind saves of its outputs: no custom Function.
bool ForwardBuilder::saves_outputs_only(const OpStatement& op, std::size_t n) const {
  return n <= saved_outputs(op).size();
}

/// How many of the pending packs the last op made (R3): its saved outputs, as many as match, then
/// all up to the last one that is no input of the op that comes.
std::size_t ForwardBuilder::n_of_last_op(const OpStatement* next) const {
  if (next == nullptr) return pending_.size();
  std::size_t n = 0;
  if (last_op_) {
    const auto& last = std::get<OpStatement>(forward_.statements[*last_op_]);
    for (const std::size_t output : saved_outputs(last)) {
      if (output >= last.outputs.size()) continue;
      if (n >= pending_.size() || pending_[n].is_untold() ||
          !tensors_->is_same_place(pending_[n].value, last.outputs[output]))
        break;
      ++n;
    }
  }
  for (std::size_t i = pending_.size(); i-- > n;) {
    if (pending_[i].is_untold()) continue;  // an input of the region, and so of the op
    const ValueId value = pending_[i].value;
    const bool is_input = std::any_of(next->inputs.begin(), next->inputs.end(), [&](ValueId input) {
      return tensors_->is_same_place(input, value);
    });
    if (!is_input && copied_.count(value.index()) == 0) return i + 1;
  }
  return n;
}

/// The body of a custom Function runs without a graph, op by op, and what it saves comes after: the
/// ops before the one that gets the saves are part of its node. Each is given one of its own, which
/// saves nothing, so that the way through them stays open.
void ForwardBuilder::open_function_body() {
  std::size_t begin = *last_op_;
  for (std::size_t at = *last_op_; at-- > 0;) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (std::holds_alternative<Release>(forward_.statements[at])) continue;
    if (op == nullptr || op->makes_node) break;
    begin = at;
  }
  for (std::size_t at = begin; at < *last_op_; ++at) {
    auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr || !wants_grad(*op)) continue;
    op->makes_node = true;
    for (const ValueId output : op->outputs)
      program_->values[output].requires_grad = program_->values[output].floating;
  }
}

void ForwardBuilder::give_to_last_op(std::size_t n) {
  if (n == 0) return;
  if (!last_op_) {
    refuse("a tensor is saved that no op of its region made or reads");
    return;
  }
  auto& last = std::get<OpStatement>(forward_.statements[*last_op_]);
  if (!saves_outputs_only(last, n)) open_function_body();
  for (std::size_t i = 0; i < n; ++i) {
    if (pending_[i].is_untold()) {
      const auto argument = untold_argument(pending_[i]);
      if (!argument) {
        refuse("a region saves an input of its own that none of its ops reads");
        return;
      }
      resolve_untold(pending_[i], *argument);
    }
    Save save{pending_[i].value, true, Save::no_factor};
    save.excluded = pending_[i].excluded;
    const auto is_it = [&](ValueId value) { return tensors_->is_same_place(value, save.value); };
    const auto output = std::find_if(last.outputs.begin(), last.outputs.end(), is_it);
    const auto input = std::find_if(last.inputs.begin(), last.inputs.end(), is_it);
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
  if (next == nullptr) last_op_.reset();  // a border: nothing after it belongs to what is before
  if (next != nullptr) give_to_next_op(n, *next);
  pending_.clear();
}

/// The pending packs from `begin` on are of its inputs.
void ForwardBuilder::give_to_next_op(std::size_t begin, OpStatement& op) {
  std::vector<bool> taken(op.inputs.size(), false);
  for (std::size_t i = begin; i < pending_.size(); ++i) {
    if (pending_[i].is_untold()) {
      const auto input = untold_input(op, i - begin, pending_.size() - begin, taken);
      if (!input) {
        refuse("a region saves an input of its own for an op that reads none");
        return;
      }
      taken[*input] = true;
      resolve_untold(pending_[i], op.inputs[*input]);
      Save save{pending_[i].value, false, save_factor(false, static_cast<std::ptrdiff_t>(*input))};
      save.excluded = pending_[i].excluded;
      op.saves.push_back(save);
      continue;
    }
    Save save{pending_[i].value, false, Save::no_factor};
    save.excluded = pending_[i].excluded;
    const auto copied = copied_.find(save.value.index());
    if (copied != copied_.end()) {
      save.copy_of = copied->second;
      save.factor = 0;
      op.saves.push_back(save);
      continue;
    }
    // Which input it is, where one tensor is several: the kind's own order tells.
    std::size_t best = op.inputs.size();
    for (const SaveRule& rule : op.kind->saves) {
      if (rule.what == SaveRule::What::input && rule.index < op.inputs.size() &&
          best == op.inputs.size() && !taken[rule.index] &&
          tensors_->is_same_place(op.inputs[rule.index], save.value))
        best = rule.index;
    }
    for (std::size_t k = 0; k < op.inputs.size() && best == op.inputs.size(); ++k)
      if (!taken[k] && tensors_->is_same_place(op.inputs[k], save.value)) best = k;
    if (best < op.inputs.size()) {
      taken[best] = true;
      save.value = op.inputs[best];
      save.factor = save_factor(false, static_cast<std::ptrdiff_t>(best));
    }
    op.saves.push_back(save);
  }
}

}  // namespace remat
