#include "properties/body_generator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/errors.hpp"

namespace remat {
namespace {

// Distinct primes as byte sizes: a sum of bytes tells which storages it is made of.
constexpr std::array<std::int64_t, 48> primes = {
    11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,  53,  59,  61,  67,  71,
    73,  79,  83,  89,  97,  101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151,
    157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223, 227, 229, 233, 239};

/// One byte an element, so that a prime shape has a prime size.
constexpr std::string_view byte_dtype = "f8";

const OpKind& op_kind(std::string_view name) {
  const OpKind* kind = find_op_kind(name);
  REMAT_INVARIANT(kind != nullptr);
  return *kind;
}

/// How many tensors a kind takes and makes.
struct Arity {
  std::string_view kind;
  std::size_t inputs;
  std::size_t outputs;
};
constexpr std::array plain_ops = {
    Arity{"sin", 1, 1},     Arity{"tanh", 1, 1},    Arity{"mul", 2, 1},     Arity{"add", 2, 1},
    Arity{"gelu", 1, 1},    Arity{"softmax", 1, 1}, Arity{"addmm", 3, 1},   Arity{"mm", 2, 1},
    Arity{"rmsnorm", 2, 1}, Arity{"scale", 1, 1},   Arity{"sigmoid", 1, 1}, Arity{"clone", 1, 1},
    Arity{"cat", 2, 1},     Arity{"cos", 1, 1},     Arity{"relu", 1, 1},    Arity{"silu", 1, 1}};
constexpr std::array wide_ops = {Arity{"native_layer_norm", 3, 3}, Arity{"attention", 3, 2},
                                 Arity{"topk", 1, 2}};

}  // namespace

TensorLayout BodyGenerator::next_layout() {
  TensorLayout layout;
  layout.dtype = byte_dtype;
  layout.shape = {primes[n_primes_++ % primes.size()]};
  layout.stride = {1};
  return layout;
}

ValueId BodyGenerator::pick(const std::vector<ValueId>& pool) {
  // The newest is the simplest choice: it makes a chain.
  const std::size_t back = has(Feature::fan_out) ? tape_->choose(pool.size()) : 0;
  return builder_->since_write(pool[pool.size() - 1 - back]);
}

ValueId BodyGenerator::pick_or_param(const std::vector<ValueId>& pool) {
  if (params_.empty() || tape_->choose(2) == 0) return pick(pool);
  const ValueId param = params_[tape_->choose(params_.size())];
  if (region_floor_ > 0) read_param_ = param;
  return param;
}

ValueId BodyGenerator::write_op(std::string_view name, const std::vector<ValueId>& inputs) {
  const OpKind& kind = op_kind(name);
  std::size_t n_outputs = 1;
  for (const Arity& wide : wide_ops)
    if (wide.kind == name) n_outputs = wide.outputs;
  if (kind.draws) n_outputs = 2;
  std::vector<NewTensor> tensors;
  for (std::size_t j = 0; j < n_outputs; ++j)
    tensors.push_back({next_layout()});
  const Duration cost = next_cost();
  const bool kept = !kind.draws && (std::exchange(keeps_next_, false) || keeps());
  const std::vector<ValueId> outputs = builder_->op({&kind, inputs, cost, kept}, tensors);
  const auto& op = std::get<OpStatement>(builder_->forward().statements.back());
  for (const Save& save : op.saves)
    fixed_.insert(builder_->value(save.value).buffer.index());
  if (op.kept) {
    for (const ValueId output : outputs)
      fixed_.insert(builder_->value(output).buffer.index());
  }
  if (builder_->value(outputs[0]).requires_grad) pool_.push_back(outputs[0]);
  return outputs[0];
}

void BodyGenerator::write_view() {
  const ValueId base = pick(pool_);
  TensorLayout layout = builder_->value(base).layout;
  const std::int64_t n = layout.shape[0];
  const auto begin = static_cast<std::int64_t>(tape_->choose(static_cast<std::uint64_t>(n)));
  layout.shape[0] = n - begin;
  layout.offset += begin * layout.stride[0];
  const std::vector<ValueId> made = builder_->op({&op_kind("slice"), {base}}, {{layout}});
  pool_.push_back(made[0]);
}

/// Writes a tensor that the innermost region made and that nothing relies on yet.
void BodyGenerator::write_in_place() {
  std::vector<ValueId> free;
  for (std::size_t i = region_floor_; i < pool_.size(); ++i) {
    const ValueId value = builder_->since_write(pool_[i]);
    const std::uint32_t buffer = builder_->value(value).buffer.index();
    if (buffer >= buffer_floor_ && !fixed_.contains(buffer)) free.push_back(value);
  }
  if (free.empty()) {
    write_op("sin", {pick(pool_)});
    return;
  }
  const ValueId target = free[free.size() - 1 - tape_->choose(free.size())];
  std::vector<ValueId> inputs = {target};
  // A reentrant forward has no graph and copies nothing; its replay would.
  const bool multiplies =
      !params_.empty() && protocol_ != "torch-reentrant" && tape_->choose(2) == 1;
  if (multiplies) inputs.push_back(params_[tape_->choose(params_.size())]);
  builder_->in_place({&op_kind(multiplies ? "mul" : "scale"), inputs, next_cost()});
  for (ValueId& value : pool_)
    value = builder_->since_write(value);
}

void BodyGenerator::write_no_grad() {
  const std::size_t begin = builder_->begin_no_grad();
  const ValueId made =
      builder_->op({&op_kind("sin"), {pick(pool_)}, next_cost()}, {{next_layout()}})[0];
  builder_->end_no_grad(begin);
  write_op("mul", {pick(pool_), made});
}

void BodyGenerator::write_statement(std::size_t depth) {
  if (draws(Feature::views)) return write_view();
  if (draws(Feature::in_place)) return write_in_place();
  if (draws(Feature::random)) {
    write_op("dropout", {pick(pool_)});
    return;
  }
  if (draws(Feature::no_grad)) return write_no_grad();
  if (draws(Feature::side_effects)) {
    // An effect that a replay repeats is op_counts' business: only after the region's last save.
    return;
  }
  if (depth < 2 && draws(Feature::nesting)) return write_region({}, false, depth + 1);
  const bool is_wide = draws(Feature::many_outputs);
  const Arity& op = is_wide ? wide_ops[tape_->choose(wide_ops.size())]
                            : plain_ops[tape_->choose(plain_ops.size())];
  std::vector<ValueId> inputs = {pick(pool_)};
  for (std::size_t i = 1; i < op.inputs; ++i)
    inputs.push_back(pick_or_param(pool_));
  const ValueId made = write_op(op.kind, inputs);
  if (draws(Feature::unused) && pool_.size() > region_floor_ + 1 && pool_.back() == made)
    pool_.pop_back();  // nobody reads it
}

void BodyGenerator::finish_region(std::size_t begin, bool may_hide) {
  std::vector<ValueId> inputs = builder_->read_since(begin + 1);
  if (may_hide && inputs.size() > 1 && draws(Feature::containers)) {
    hidden_argument_ = inputs.back();
    inputs.pop_back();
  }
  for (const ValueId input : builder_->read_since(begin + 1))
    fixed_.insert(builder_->value(input).buffer.index());
  if (!inputs.empty()) region_argument_ = inputs.front();
  builder_->end_region(begin, inputs);
}

void BodyGenerator::write_region(const NegativeEdit& edit, bool takes_edit, std::size_t depth) {
  RegionBegin region;
  region.name = "r" + std::to_string(n_regions_++);
  region.reentrant = protocol_ == "torch-reentrant";
  region.early_stop = !draws(Feature::whole_replays);
  if (edit.name == "fewer saves" || edit.name == "more saves" || edit.name == "stale slot" ||
      edit.name == "op without entry")
    region.early_stop = false;
  const std::size_t begin = builder_->begin_region(region);
  const std::size_t outer_floor = region_floor_;
  const std::size_t outer_buffer_floor =
      std::exchange(buffer_floor_, builder_->program().buffers.size());
  const std::size_t outside = pool_.size();
  region_floor_ = pool_.size();
  // Its first op reads what requires grad, so that the region has a graph.
  keeps_next_ = takes_edit && edit.name == "selective twice";
  ValueId first = write_op(tape_->choose(2) == 0 && !keeps_next_ ? "sin" : "tanh", {pick(pool_)});
  if (takes_edit) {
    write_edit(edit);
    first = pool_.back();
  }
  const std::uint64_t n = tape_->choose(5);
  for (std::uint64_t i = 0; i < n; ++i)
    write_statement(depth);
  // With fan-out the last value need not come from the first: nothing is to hang in the air.
  first = builder_->since_write(first);
  if (has(Feature::fan_out) && pool_.back() != first) write_op("add", {pool_.back(), first});
  finish_region(begin, protocol_ != "torch-reentrant");
  region_floor_ = outer_floor;
  buffer_floor_ = outer_buffer_floor;
  // Values made inside leave it through its last one only.
  const ValueId last = pool_.back();
  pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(outside), pool_.end());
  pool_.push_back(last);
}

void BodyGenerator::write_edit(const NegativeEdit& edit) {
  const ValueId last = pool_.back();
  if (edit.name == "raise in forward" || edit.name == "raise in replay") {
    builder_->raise("builtins.ValueError",
                    edit.name == "raise in replay" ? Raise::Runs::replay : Raise::Runs::forward);
    write_op("tanh", {last});
  } else if (edit.name == "fewer saves") {
    const std::size_t begin = builder_->begin_branch(false);
    builder_->op({&op_kind("sin"), {last}}, {{next_layout()}});
    builder_->end_branch(begin);
    write_op("tanh", {last});
  } else if (edit.name == "more saves" || edit.name == "op without entry") {
    const std::size_t begin = builder_->begin_branch(true);
    builder_->op({&op_kind("abs"), {last}}, {{next_layout()}});  // no other op is one
    builder_->end_branch(begin);
    write_op("tanh", {last});
  } else if (edit.name == "other path") {
    const std::size_t in_forward = builder_->begin_branch(false);
    const TensorLayout layout = next_layout();
    const ValueId made = builder_->op({&op_kind("sin"), {last}}, {{layout}})[0];
    builder_->end_branch(in_forward);
    const std::size_t in_replay = builder_->begin_branch(true);
    const ValueId other = builder_->op({&op_kind("cos"), {last}}, {{layout}})[0];
    builder_->bind(other, made);
    builder_->end_branch(in_replay);
    pool_.push_back(made);
    write_op("tanh", {made});
    fixed_.insert(builder_->value(made).buffer.index());
  } else if (edit.name == "stale slot") {
    const ValueId saved = write_op("sin", {last});
    write_op("mul", {saved, saved});
    // Past autograd's own check, which would raise in plain code: nobody sees this write but K2.
    const std::size_t begin = builder_->begin_no_grad();
    builder_->in_place({&op_kind("scale"), {saved}});
    builder_->end_no_grad(begin);
    for (ValueId& value : pool_)
      value = builder_->since_write(value);
  }
}

ValueId BodyGenerator::write(const NegativeEdit& edit) {
  pool_ = {builder_->leaf("x", next_layout(), BufferRole::input, true)};
  const std::uint64_t n_params = tape_->choose(4);
  for (std::uint64_t i = 0; i < n_params; ++i) {
    const bool is_frozen = draws(Feature::frozen);
    params_.push_back(
        builder_->leaf("w" + std::to_string(i), next_layout(), BufferRole::param, !is_frozen));
  }
  write_op("scale", {pool_.back()});  // the input itself is the caller's
  const std::uint64_t n_regions = 1 + tape_->choose(4);
  const std::uint64_t edited = tape_->choose(n_regions);
  for (std::uint64_t i = 0; i < n_regions; ++i) {
    if (i > 0 && tape_->choose(3) == 2) write_statement(2);
    write_region(edit, i == edited && !edit.name.empty(), 0);
    ends_.push_back(pool_.back());
  }
  std::vector<ValueId> read = {builder_->since_write(pool_.back())};
  for (const ValueId end : ends_) {
    const ValueId now = builder_->since_write(end);
    if (now != read.front()) read.push_back(now);
  }
  return builder_->op({&op_kind("sum"), read}, {{next_layout()}})[0];
}

}  // namespace remat
