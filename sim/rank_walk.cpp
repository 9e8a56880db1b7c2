#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "model/op_values.hpp"
#include "model/random_bits.hpp"
#include "sim/rank.hpp"

// Statement by statement: ops, what they make, and the nodes that autograd gets for them.

namespace remat {
namespace {

constexpr std::uint64_t draw_stream = 0x64726177ULL;
constexpr std::uint64_t partial_write_stream = 0x7061727469616cULL;

constexpr std::string_view copy_name = "aten.clone.default";

/// The in-place op writes the whole storage, so nothing of the old element stays.
bool covers(const Program& program, ValueId value) {
  const ProgramValue& target = program.values[value];
  return element_bytes_of(target.layout) >= program.buffers[target.buffer].bytes;
}

/// What no simulation may depend on, for the fault that does.
Duration op_number_of_the_process() {
  static std::atomic<std::int64_t> n_ops = 0;
  return {n_ops++};
}

}  // namespace

Flow Rank::run(Walk& walk, std::size_t begin, std::size_t end) {
  const std::vector<Statement>& statements = program_->forwards[walk.forward].statements;
  for (std::size_t at = begin; at < end; ++at) {
    const Statement& statement = statements[at];
    Flow flow = Flow::done;
    if (const auto* op = std::get_if<OpStatement>(&statement)) {
      flow = run_op(walk, *op);
    } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
      flow = run_region(walk, at, *region);
      at = region->end;
    } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
      flow = run_wrapper(walk, at, *wrapper);
      at = wrapper->end;
    } else if (const auto* gone = std::get_if<Release>(&statement)) {
      for (const ValueId value : gone->values)
        walk.variables.erase(value);
    } else if (const auto* effect = std::get_if<SideEffect>(&statement)) {
      log_->side_effect(effect->name);
    } else if (const auto* needs = std::get_if<NeedsTensor>(&statement)) {
      const bool is_asked = remat_rules_.handles_regions && walk.packs != Packs::plain;
      if (is_asked) flow = need(walk, needs->value);
    } else if (const auto* raise = std::get_if<Raise>(&statement)) {
      flow = run_raise(walk, *raise);
    } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
      if (branch->in_replay != walk.is_replay) at = branch->end - 1;
    } else if (const auto* bind = std::get_if<Bind>(&statement)) {
      Rank::bind(walk, bind->from, bind->to);
    } else if (const auto* mark = std::get_if<Mark>(&statement)) {
      pass_marker(walk, *mark);
    } else if (const auto* compiled = std::get_if<CompiledBegin>(&statement)) {
      const bool outer = std::exchange(walk.is_compiled, true);
      flow = run(walk, at + 1, compiled->end);
      walk.is_compiled = outer;
      at = compiled->end - 1;
    } else if (const auto* offloaded = std::get_if<OffloadBegin>(&statement)) {
      flow = run_offloaded(walk, at, *offloaded);
      at = offloaded->end - 1;
    } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
      flow = run_caught(walk, at, *caught);
      at = caught->end - 1;
    } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
      const bool grad = std::exchange(walk.grad, false);
      flow = run(walk, at + 1, off->end);
      walk.grad = grad;
      at = off->end - 1;
    }
    if (flow != Flow::done) return flow;
  }
  return Flow::done;
}

/// The variable of `to` is what that of `from` is.
void Rank::bind(Walk& walk, ValueId from, ValueId to) {
  const Variable* known = find(walk, from);
  if (known == nullptr) return;
  walk.variables.set(
      to, {known->tensor.shared_as(walk.owner), known->node.shared(), known->output, to});
}

Ring Rank::draw() {
  log_->rng(counts_.rng_position);
  return constant_of(
      random_bits(options_.seed, draw_stream, static_cast<std::uint64_t>(counts_.rng_position++)));
}

bool Rank::is_defined(Walk& walk, ValueId value) {
  const bool is_leaf = program_->buffers[value_of(value).buffer].role != BufferRole::none;
  return is_leaf || find(walk, value) != nullptr;
}

/// Every variable that is read has a value in this run: a branch not taken may have left one out.
Flow Rank::require_defined(Walk& walk, const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    if (is_defined(walk, value)) continue;
    // Of a recording: a skipped body made it, and handed it on past its outputs.
    const bool is_untold = walk.is_replay && options_.carries_shapes;
    return fail(is_untold ? "E-UNKNOWN" : "E-USER", "builtins.UnboundLocalError",
                fmt::format("{}: '{}' is read and has no value in this run of the code",
                            described(site_of(walk)), value_of(value).name));
  }
  return Flow::done;
}

Flow Rank::run_op(Walk& walk, const OpStatement& op) {
  if (const Flow defined = require_defined(walk, op.inputs); defined != Flow::done) return defined;
  if (const Flow flow = refuse_unkept_inputs(walk, op); flow != Flow::done) return flow;
  if (const Flow flow = refuse_served_write(walk, op); flow != Flow::done) return flow;
  const Phase phase = log_->phase();
  if (op.by_caller) log_->set_phase(Phase::setup);
  std::vector<SavedSlot> saves;  // a node's, where there is one
  std::vector<Save> own_saves;
  const Taped tapes = taped(walk, op, own_saves);
  if (tapes.makes_node) saves.reserve(tapes.saves.size());
  const Raise* in_pack = std::exchange(walk.in_pack, nullptr);
  if (!options_.raises_in_hooks && !catches_) in_pack = nullptr;
  const Raise* const in_unpack = std::exchange(walk.in_unpack, nullptr);
  const auto pack_those = [&](bool after_op) {
    for (const Save& save : tapes.saves) {
      if (!tapes.makes_node || save.after_op != after_op) continue;
      SavedSlot slot;
      slot.factor = save.factor;
      if (save.excluded) slot.recorded = &*save.excluded;
      if (save.copy_of) copy(walk, *save.copy_of, save.value);
      if (const Raise* raises = std::exchange(in_pack, nullptr)) {
        const Flow raised = raise_as_told(*raises, site_of(walk), "raised by a pack hook");
        if (raised != Flow::done) return raised;
      }
      const Flow flow = pack(walk, tensor_of(walk, save.value, walk.owner), slot);
      if (flow != Flow::done) return flow;
      saves.push_back(std::move(slot));
    }
    return Flow::done;
  };
  CarriedShapes shapes;
  Flow flow =
      walk.is_replay && options_.carries_shapes ? carry_shapes(walk, op, shapes) : Flow::done;
  if (flow == Flow::done) flow = pack_those(false);
  if (flow == Flow::done && shapes.raises) flow = refuse_placeholder(walk, op);
  if (flow == Flow::done && remat_rules_.handles_regions)
    flow = refuse_placeholder_inputs(walk, op);
  Tensors outputs;
  bool served = false;
  const bool is_cached = is_policy_asked(walk, op);
  if (flow == Flow::done && is_cached) flow = serve(walk, op, outputs, served);
  if (flow == Flow::done && !served) {
    flow = op.group ? run_collective(walk, op, outputs) : run_kernel(walk, op, outputs);
    if (flow == Flow::done && is_cached && !walk.serves) flow = remember(walk, op, outputs);
  }
  if (flow == Flow::done) {
    note_shapes(shapes, outputs);
    for (std::size_t j = 0; j < outputs.size() && j < op.outputs.size(); ++j) {
      if (is_leaf_write(op, op.outputs[j])) continue;  // it stays the leaf that it is
      // A write that autograd does not see leaves a tensor the history that it had.
      const Variable* was = j < op.were.size() ? find(walk, op.were[j]) : nullptr;
      const bool has_history = was != nullptr && !tapes.makes_node;
      NodeRef node = has_history ? was->node.shared() : NodeRef();
      const std::uint32_t output = has_history ? was->output : 0;
      walk.variables.set(op.outputs[j], {outputs[j].shared_as(walk.owner), std::move(node), output,
                                         op.outputs[j]});
    }
    flow = pack_those(true);
  }
  note_grad_of_outputs(walk, op, tapes.makes_node);
  if (flow == Flow::done && tapes.makes_node) {
    make_node(walk, op, std::move(saves), in_unpack);
  } else {
    for (SavedSlot& slot : saves)
      release(slot);
  }
  for (const Save& save : op.saves)
    if (save.copy_of) walk.variables.erase(save.value);
  if (op.by_caller) log_->set_phase(phase);
  return flow;
}

/// What an in-place op will overwrite, kept as it is now.
void Rank::copy(Walk& walk, ValueId from, ValueId to) {
  const Tensor source = tensor_of(walk, from, walk.owner);
  const BufferId buffer = value_of(to).buffer;
  const std::uint32_t storage = allocate(buffer, copy_name);
  ledger_.set_element(storage, element_of(source) * inverse(value_of(to).constant));
  Tensor made{Owned(ledger_, storage, walk.owner), to, log_->book().tensor++};
  if (log_->is_on()) log_->op(copy_name, std::array{source.id}, std::array{shown(made)}, {});
  walk.variables.set(to, {std::move(made), {}, 0, to});
}

Flow Rank::run_kernel(Walk& walk, const OpStatement& op, Tensors& outputs) {
  Few<Ring> inputs;
  Few<std::int64_t> input_ids;
  Tensors read;  // where somebody asks which streams read what
  for (const ValueId input : op.inputs) {
    Tensor tensor = tensor_of(walk, input, walk.owner);
    inputs.push_back(element_of(tensor));
    input_ids.push_back(tensor.id);
    if (offloader_ != nullptr) read.push_back(std::move(tensor));
  }
  Few<Ring> values(op.outputs.size());
  const Ring drawn = op.kind->draws ? draw() : Ring();
  OpValues(*op.kind, op.seed).evaluate(span_of(inputs), drawn, span_of(values));
  for (std::size_t j = 0; j < op.outputs.size(); ++j) {
    bool is_new = false;
    Tensor output = make_output(walk, op, op.outputs[j], outputs, is_new);
    if (op.writes && j == 0) {
      write_in_place(op, output, values[0]);
      carry_object(walk, tensor_of(walk, *op.writes, walk.owner).id, output.id);
    } else if (is_new) {
      ledger_.set_element(output.hold.storage(),
                          values[j] * inverse(value_of(output.value).constant));
    }
    outputs.push_back(std::move(output));
  }
  log_->spend(op.cost);
  if (has(RankFault::times_from_the_process)) log_->spend(op_number_of_the_process());
  show_op(walk, op, span_of(input_ids), span_of(read), span_of(outputs));
  return Flow::done;
}

/// An op that has run, in the trace: what it read and made, and what it wrote in place.
void Rank::show_op(const Walk& walk, const OpStatement& op, std::span<const std::int64_t> input_ids,
                   std::span<const Tensor> read, std::span<const Tensor> outputs) {
  if (!log_->is_on()) return;
  Few<ShownTensor> shown_outputs;
  for (const Tensor& output : outputs)
    shown_outputs.push_back(shown(output));
  log_->op(op.name, input_ids, span_of(shown_outputs), op.cost, is_hidden(walk));
  launch(op.name, read, outputs);
  if (op.writes && !outputs.empty())
    log_->mutate(outputs[0].id, ledger_.number(outputs[0].hold.storage()));
}

/// The output lies on an input's storage, on that of an output before it, or on a new one.
Tensor Rank::make_output(Walk& walk, const OpStatement& op, ValueId output, const Tensors& made,
                         bool& is_new) {
  if (is_leaf_write(op, output)) return tensor_of(walk, output, walk.owner);
  const BufferId buffer = value_of(output).buffer;
  for (const ValueId input : op.inputs) {
    if (value_of(input).buffer != buffer) continue;
    const Tensor base = tensor_of(walk, input, walk.owner);
    return {base.hold.shared_as(walk.owner), output, log_->book().tensor++};
  }
  for (const Tensor& earlier : made) {
    if (value_of(earlier.value).buffer == buffer)
      return {earlier.hold.shared_as(walk.owner), output, log_->book().tensor++};
  }
  is_new = true;
  const std::uint32_t storage = allocate(buffer, op.name);
  ledger_.set_begin(storage, walk.is_replay ? op.replay_offset : 0);
  return {Owned(ledger_, storage, walk.owner), output, log_->book().tensor++};
}

void Rank::write_in_place(const OpStatement& op, const Tensor& target, Ring value) {
  const std::uint32_t storage = target.hold.storage();
  const Ring written = value * inverse(value_of(target.value).constant);
  ledger_.set_element(storage, covers(*program_, target.value)
                                   ? written
                                   : partial_write(op.seed).old_part * ledger_.element(storage) +
                                         partial_write(op.seed).new_part * written);
  ledger_.bump_version(storage);
}

bool Rank::is_leaf_write(const OpStatement& op, ValueId output) const {
  return op.writes == output && program_->buffers[value_of(output).buffer].role != BufferRole::none;
}

PartialWrite partial_write(std::uint64_t seed) {
  return {constant_of(random_bits(seed, partial_write_stream, 0)),
          constant_of(random_bits(seed, partial_write_stream, 1))};
}

bool Rank::writes_a_part(const OpStatement& op) const {
  return op.writes && !covers(*program_, op.outputs.front());
}

Edge Rank::edge_to(Walk& walk, ValueId input) {
  if (!value_of(input).floating || !requires_grad(walk, input)) return {};
  const Variable* variable = find(walk, input);
  if (variable == nullptr) return {{}, 0, input};
  if (!variable->node) return {};
  return {variable->node.shared(), variable->output, std::nullopt};
}

void Rank::make_node(Walk& walk, const OpStatement& op, std::vector<SavedSlot> saves,
                     const Raise* in_unpack) {
  std::vector<Edge> edges;
  edges.reserve(op.inputs.size());
  bool leads_anywhere = !saves.empty();
  for (const ValueId input : op.inputs) {
    edges.push_back(edge_to(walk, input));
    leads_anywhere |= edges.back().node || edges.back().leaf;
  }
  if (!leads_anywhere) return;  // nothing in it requires grad after all
  NodeRef ref = tape_.make(tape_.next_seq());
  Node& node = tape_[ref.index()];
  node.op = &op;
  node.in_unpack = in_unpack;
  node.site = site_of(walk);
  node.offload_group = walk.offload_group;
  node.n_outputs = static_cast<std::uint32_t>(op.outputs.size());
  node.saves = std::move(saves);
  node.edges = std::move(edges);
  for (std::uint32_t j = 0; j < op.outputs.size(); ++j) {
    Variable* variable = find(walk, op.outputs[j]);
    if (variable == nullptr || !value_of(op.outputs[j]).floating) continue;
    variable->node = ref.shared();
    variable->output = j;
  }
}

}  // namespace remat
