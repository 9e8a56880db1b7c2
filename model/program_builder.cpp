#include "model/program_builder.hpp"

#include <algorithm>
#include <utility>

#include "model/op_saves.hpp"
#include "model/op_values.hpp"
#include "model/releases.hpp"

namespace remat {

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

bool ProgramBuilder::wants_grad(const OpStatement& op) const {
  if (!op.kind->differentiable || no_grad_depth_ > 0) return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](ValueId input) { return program_.values[input].requires_grad; });
}

std::vector<ValueId> ProgramBuilder::op(const OpKind& kind, const std::vector<ValueId>& inputs,
                                        const std::vector<TensorLayout>& outputs, Duration cost,
                                        bool kept) {
  OpStatement op;
  op.name = kind.name;
  op.kind = &kind;
  op.seed = op_seed(kind.name, {});
  op.inputs = inputs;
  op.kept = kept;
  op.cost = cost;
  op.makes_node = wants_grad(op);
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const bool is_view = kind.makes_view && !inputs.empty();
    const BufferId buffer = is_view
                                ? program_.values[inputs[0]].buffer
                                : program_.buffers.push_back({.bytes = spanned_bytes(outputs[j])});
    const bool is_part = j == 0 || kind.outputs_are_parts;
    const std::string name = "v" + std::to_string(program_.values.size());
    op.outputs.push_back(add(name, buffer, outputs[j], op.makes_node && is_part));
  }
  if (op.makes_node) op.saves = saves_by_table(program_, op);
  std::vector<ValueId> made = op.outputs;
  forward_.statements.emplace_back(std::move(op));
  return made;
}

ValueId ProgramBuilder::in_place(const OpKind& kind, const std::vector<ValueId>& inputs,
                                 Duration cost) {
  const ValueId before = inputs[0];
  const ProgramValue old = program_.values[before];
  OpStatement op;
  op.name = kind.name;
  op.kind = &kind;
  op.seed = op_seed(kind.name, {});
  op.inputs = inputs;
  op.cost = cost;
  op.writes = before;
  op.makes_node = wants_grad(op);
  const std::vector<ValueId> seen_before = on_buffer_[old.buffer.index()];
  on_buffer_[old.buffer.index()].clear();
  for (const ValueId seen : seen_before) {
    const ProgramValue was = program_.values[seen];
    const ValueId now = add(was.name, was.buffer, was.layout, op.makes_node || was.requires_grad);
    since_write_[seen.index()] = now.index();
    if (seen == before) {
      op.outputs.insert(op.outputs.begin(), now);
    } else {
      op.outputs.push_back(now);
    }
  }
  const ValueId after = op.outputs.front();
  if (op.makes_node) op.saves = saves_by_table(program_, op);
  for (Save& save : op.saves) {
    if (save.after_op || save.value != before) continue;
    const BufferId copy = program_.buffers.push_back({.bytes = spanned_bytes(old.layout)});
    save.copy_of = before;
    save.value = add(old.name, copy, old.layout, false);
  }
  forward_.statements.emplace_back(std::move(op));
  return after;
}

ValueId ProgramBuilder::update(ValueId target) {
  const ProgramValue old = program_.values[target];
  OpStatement op;
  op.name = "add_";
  op.kind = find_op_kind("add");
  op.seed = op_seed("update", old.name);
  op.inputs = {target};
  op.writes = target;
  op.by_caller = true;
  const bool is_leaf = program_.buffers[old.buffer].role != BufferRole::none;
  op.outputs = {is_leaf ? target : add(old.name, old.buffer, old.layout, old.requires_grad)};
  const ValueId after = op.outputs.front();
  forward_.statements.emplace_back(std::move(op));
  return after;
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

std::size_t ProgramBuilder::begin_branch(bool in_replay) {
  forward_.statements.emplace_back(BranchBegin{in_replay, 0});
  return forward_.statements.size() - 1;
}

void ProgramBuilder::end_branch(std::size_t begin) {
  std::get<BranchBegin>(forward_.statements[begin]).end = forward_.statements.size();
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

void ProgramBuilder::bind(ValueId from, ValueId to) {
  forward_.statements.emplace_back(Bind{from, to});
}

void ProgramBuilder::side_effect(const std::string& name) {
  forward_.statements.emplace_back(SideEffect{name});
}

void ProgramBuilder::raise(const std::string& type, Raise::Runs runs) {
  forward_.statements.emplace_back(Raise{type, runs});
}

std::vector<ValueId> ProgramBuilder::read_since(std::size_t begin) const {
  return values_from_outside(program_, forward_, begin, forward_.statements.size());
}

Program ProgramBuilder::finish(ValueId root) {
  forward_.root = root;
  add_releases(program_, forward_);
  program_.forwards.push_back(std::move(forward_));
  finish_program(program_);
  return std::move(program_);
}

}  // namespace remat
