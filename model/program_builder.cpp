#include "model/program_builder.hpp"

#include <algorithm>
#include <utility>

#include "model/op_saves.hpp"
#include "model/op_values.hpp"
#include "model/releases.hpp"
#include "model/units.hpp"

namespace remat {

namespace {

/// Of the tensor's storage, room for it to lie further on included.
std::int64_t bytes_of(const NewTensor& made, const NewOp& request) {
  std::int64_t room = 0;
  if (__builtin_mul_overflow(request.replay_offset, element_bytes(made.layout.dtype), &room))
    room = INT64_MAX;
  return saturated_sum(spanned_bytes(made.layout), room);
}

}  // namespace

ValueId ProgramBuilder::add(const std::string& name, BufferId buffer, const TensorLayout& layout,
                            bool requires_grad) {
  ProgramValue value;
  value.name = name;
  value.buffer = buffer;
  value.layout = layout;
  value.floating = is_floating(layout.dtype);
  value.requires_grad = requires_grad && value.floating;
  const ValueId made = program_.values.push_back(std::move(value));
  since_write_.push_back(made.index());
  on_buffer_.resize(program_.buffers.size());
  on_buffer_[buffer.index()].push_back(made);
  return made;
}

ValueId ProgramBuilder::leaf(const std::string& name, const TensorLayout& layout, BufferRole role,
                             bool requires_grad) {
  const BufferId buffer =
      program_.buffers.push_back({.bytes = spanned_bytes(layout), .role = role});
  const ValueId made = add(name, buffer, layout, requires_grad);
  if (role == BufferRole::param) program_.parameters.push_back(made);
  if (role == BufferRole::input && requires_grad) forward_.inputs.push_back(made);
  return made;
}

bool ProgramBuilder::is_leaf(ValueId value) const {
  return program_.buffers[program_.values[value].buffer].role != BufferRole::none;
}

OpStatement ProgramBuilder::started(const NewOp& request) const {
  OpStatement op;
  op.name = request.kind->name;
  op.kind = request.kind;
  op.seed = op_seed(request.kind->name, request.attributes);
  op.inputs = request.inputs;
  op.kept = request.kept;
  op.cost = request.cost;
  op.gradient_cost = request.gradient_cost;
  op.group = request.group;
  op.replay_offset = request.replay_offset;
  const auto requires_grad = [&](ValueId input) { return program_.values[input].requires_grad; };
  op.makes_node = op.kind->differentiable && no_grad_depth_ == 0 &&
                  std::any_of(op.inputs.begin(), op.inputs.end(), requires_grad);
  return op;
}

void ProgramBuilder::finish(OpStatement op, const NewOp& request) {
  if (op.makes_node && !request.saves) op.saves = saves_by_table(program_, op);
  if (op.makes_node && request.saves) {
    for (const SaveChoice& choice : *request.saves) {
      op.saves.push_back(
          {(choice.is_output ? op.outputs : op.inputs)[choice.index], choice.is_output,
           save_factor(choice.is_output, static_cast<std::ptrdiff_t>(choice.index))});
    }
    // Inputs are packed before the kernel runs, whatever the order in which they are named.
    std::stable_partition(op.saves.begin(), op.saves.end(),
                          [](const Save& save) { return !save.after_op; });
  }
  if (op.writes) copy_overwritten(op);
  forward_.statements.emplace_back(std::move(op));
}

std::vector<ValueId> ProgramBuilder::op(const NewOp& request,
                                        const std::vector<NewTensor>& outputs) {
  OpStatement op = started(request);
  const bool is_view = op.kind->makes_view && !op.inputs.empty();
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const NewTensor& made = outputs[j];
    const BufferId buffer = is_view
                                ? program_.values[op.inputs[0]].buffer
                                : program_.buffers.push_back({.bytes = bytes_of(made, request)});
    const bool is_part = j == 0 || op.kind->outputs_are_parts;
    const std::string name =
        made.name.empty() ? "v" + std::to_string(program_.values.size()) : made.name;
    op.outputs.push_back(add(name, buffer, made.layout, op.makes_node && is_part));
  }
  std::vector<ValueId> made = op.outputs;
  finish(std::move(op), request);
  return made;
}

void ProgramBuilder::in_place(const NewOp& request) {
  OpStatement op = started(request);
  op.writes = op.inputs.front();
  rebase(op);
  finish(std::move(op), request);
}

/// Gives the op an output for each tensor on the storage that it writes, the written one first.
void ProgramBuilder::rebase(OpStatement& op) {
  const ValueId before = *op.writes;
  const std::uint32_t buffer = program_.values[before].buffer.index();
  const auto add_output = [&](ValueId now, ValueId was) {
    const bool is_written = was == before;
    op.outputs.insert(is_written ? op.outputs.begin() : op.outputs.end(), now);
    op.were.insert(is_written ? op.were.begin() : op.were.end(), was);
  };
  for (const ValueId seen : std::exchange(on_buffer_[buffer], {})) {
    if (seen == before && is_leaf(before)) {
      on_buffer_[buffer].push_back(before);
      add_output(before, before);
      continue;
    }
    const ProgramValue was = program_.values[seen];
    const ValueId now = add(was.name, was.buffer, was.layout, op.makes_node || was.requires_grad);
    since_write_[seen.index()] = now.index();
    add_output(now, seen);
  }
}

/// What backward needs of a tensor that is overwritten is saved as a copy (R14).
void ProgramBuilder::copy_overwritten(OpStatement& op) {
  for (Save& save : op.saves) {
    if (save.after_op || save.value != *op.writes) continue;
    const ProgramValue old = program_.values[*op.writes];
    const BufferId copy = program_.buffers.push_back({.bytes = spanned_bytes(old.layout)});
    save.copy_of = *op.writes;
    save.value = add(old.name, copy, old.layout, false);
  }
}

void ProgramBuilder::update(ValueId target) {
  const ProgramValue old = program_.values[target];
  OpStatement op;
  op.name = "add_";
  op.kind = find_op_kind("add");
  op.seed = op_seed("update", old.name);
  op.inputs = {target};
  op.writes = target;
  op.by_caller = true;
  op.outputs = {target};
  if (!is_leaf(target)) {
    // The tensor's own name and history stay: autograd does not see this write.
    op.outputs = {add(old.name, old.buffer, old.layout, old.requires_grad)};
    on_buffer_[old.buffer.index()].pop_back();
  }
  forward_.statements.emplace_back(std::move(op));
}

ValueId ProgramBuilder::since_write(ValueId value) const {
  std::uint32_t now = value.index();
  while (since_write_[now] != now)
    now = since_write_[now];
  return ValueId(now);
}

std::size_t ProgramBuilder::begin_region(RegionBegin region) {
  forward_.statements.emplace_back(std::move(region));
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_region(std::size_t begin, const std::vector<ValueId>& inputs) {
  const std::size_t end = forward_.statements.size();
  forward_.statements.emplace_back(RegionEnd{begin});
  auto& region = std::get<RegionBegin>(forward_.statements[begin]);
  region.end = end;
  region.inputs = inputs;
}

/// A tensor without data that no program names.
ValueId ProgramBuilder::empty_leaf(const std::string& name, bool requires_grad) {
  const TensorLayout none = {.dtype = "f32", .shape = {0}, .stride = {1}, .offset = 0};
  return leaf(name, none, BufferRole::external, requires_grad);
}

std::size_t ProgramBuilder::begin_wrapper(WrapperBegin wrapper) {
  if (!program_.trigger) {
    program_.trigger = empty_leaf("<trigger>", true);
    program_.placeholder = empty_leaf("<placeholder>", false);
  }
  forward_.statements.emplace_back(std::move(wrapper));
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_wrapper(std::size_t begin, std::vector<WrapperBegin::Input> inputs,
                                 std::optional<std::vector<ValueId>> outputs) {
  const std::size_t end = forward_.statements.size();
  forward_.statements.emplace_back(WrapperEnd{begin});
  auto& wrapper = std::get<WrapperBegin>(forward_.statements[begin]);
  wrapper.end = end;
  wrapper.inputs = std::move(inputs);
  wrapper.tells_outputs = outputs.has_value();
  if (outputs) wrapper.outputs = std::move(*outputs);
}

std::size_t ProgramBuilder::begin_branch(bool in_replay) {
  if (in_replay) outside_.push_back({since_write_, on_buffer_});
  forward_.statements.emplace_back(BranchBegin{in_replay, 0});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_branch(std::size_t begin) {
  if (std::get<BranchBegin>(forward_.statements[begin]).in_replay) leave_replay_branch();
  std::get<BranchBegin>(forward_.statements[begin]).end = forward_.statements.size();
}

/// A tensor that the branch wrote is bound to the name that it had, and forward goes on from there.
void ProgramBuilder::leave_replay_branch() {
  const Standing outside = std::move(outside_.back());
  outside_.pop_back();
  for (std::uint32_t i = 0; i < outside.since_write.size(); ++i) {
    const ValueId now = since_write(ValueId(i));
    if (outside.since_write[i] == i && now.index() != i) bind(now, ValueId(i));
  }
  std::copy(outside.since_write.begin(), outside.since_write.end(), since_write_.begin());
  std::copy(outside.on_buffer.begin(), outside.on_buffer.end(), on_buffer_.begin());
}

std::size_t ProgramBuilder::begin_no_grad() {
  ++no_grad_depth_;
  forward_.statements.emplace_back(NoGradBegin{});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_no_grad(std::size_t begin) {
  --no_grad_depth_;
  std::get<NoGradBegin>(forward_.statements[begin]).end = forward_.statements.size();
}

std::size_t ProgramBuilder::begin_catch() {
  forward_.statements.emplace_back(CatchBegin{});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_catch(std::size_t begin) {
  std::get<CatchBegin>(forward_.statements[begin]).end = forward_.statements.size();
}

void ProgramBuilder::bind(ValueId from, ValueId to) {
  forward_.statements.emplace_back(Bind{from, to});
}

void ProgramBuilder::needs_tensor(ValueId value) {
  forward_.statements.emplace_back(NeedsTensor{value});
}

void ProgramBuilder::mark(const std::string& name) {
  forward_.statements.emplace_back(Mark{name});
}

std::size_t ProgramBuilder::begin_compiled() {
  forward_.statements.emplace_back(CompiledBegin{});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_compiled(std::size_t begin) {
  std::get<CompiledBegin>(forward_.statements[begin]).end = forward_.statements.size();
}

std::size_t ProgramBuilder::begin_offload(const std::string& name, MemoryLevel level) {
  forward_.statements.emplace_back(OffloadBegin{.name = name, .level = level});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_offload(std::size_t begin) {
  std::get<OffloadBegin>(forward_.statements[begin]).end = forward_.statements.size();
}

void ProgramBuilder::side_effect(const std::string& name) {
  forward_.statements.emplace_back(SideEffect{name});
}

void ProgramBuilder::raise(Raise raise) {
  raise.number = n_raises_++;
  forward_.statements.emplace_back(std::move(raise));
}

std::vector<ValueId> ProgramBuilder::read_since(std::size_t begin) const {
  return values_from_outside(program_, forward_, begin, forward_.statements.size());
}

Program ProgramBuilder::finish(std::optional<ValueId> root) {
  forward_.root = root;
  // Some protocols put a recompute boundary on what any checkpointed region returns.
  if (!program_.trigger) program_.trigger = empty_leaf("<trigger>", true);
  add_releases(program_, forward_);
  program_.forwards.push_back(std::move(forward_));
  finish_program(program_);
  return std::move(program_);
}

}  // namespace remat
