#include "model/builders/model_assembly.hpp"

#include <utility>

#include "model/errors.hpp"

namespace remat {
namespace {

std::string layer_name(std::int64_t number) {
  return "layer" + std::to_string(number);
}

}  // namespace

NewTensor ModelAssembly::tensor(std::string_view name, Shape shape) const {
  return tensor(name, std::move(shape), dtype_);
}

NewTensor ModelAssembly::tensor(std::string_view name, Shape shape, std::string_view dtype) const {
  NewTensor made;
  made.name = prefix_ + std::string(name);
  made.layout.dtype = dtype;
  made.layout.stride = dense_strides(shape);
  made.layout.shape = std::move(shape);
  return made;
}

void ModelAssembly::require_fits(const NewTensor& made) const {
  if (!is_larger_than_memory(made.layout)) return;
  place_.fail("'" + made.name + "' of shape " + shown_shape(made.layout.shape) +
              " is larger than any memory; expected smaller sizes");
}

ValueId ModelAssembly::input(std::string_view name, Shape shape) {
  const NewTensor given = tensor(name, std::move(shape));
  require_fits(given);
  return builder_.leaf(given.name, given.layout, BufferRole::input, true);
}

void ModelAssembly::declare(std::int64_t layer, const std::vector<NewParam>& params) {
  prefix_ = layer_name(layer) + ".";
  for (const NewParam& param : params) {
    const NewTensor made = tensor(param.name, param.shape);
    require_fits(made);
    params_.emplace(made.name,
                    builder_.leaf(made.name, made.layout, BufferRole::param, param.is_trained));
  }
  prefix_.clear();
}

ValueId ModelAssembly::own(ValueId input) {
  const std::string& name = builder_.value(input).name;
  return step("scale", input, tensor(name + ".own", shape(input)), {}, {});
}

NewOp ModelAssembly::started(std::string_view kind, const std::vector<ValueId>& inputs) const {
  NewOp op;
  op.kind = find_op_kind(kind);
  REMAT_INVARIANT(op.kind != nullptr);
  op.inputs = inputs;
  op.kept = is_kept(*reading_, kind);
  return op;
}

/// That of an op of the kind `like` on the same tensors.
Duration ModelAssembly::cost(const OpKind& like, const NewOp& op,
                             const std::vector<NewTensor>& outputs, const Shape& computed) const {
  std::vector<TensorLayout> inputs;
  for (const ValueId input : op.inputs)
    inputs.push_back(layout(input));
  std::vector<TensorLayout> made;
  made.reserve(outputs.size());
  for (const NewTensor& output : outputs)
    made.push_back(output.layout);
  return cost_of(like, inputs, made, computed, reading_->rates);
}

std::vector<ValueId> ModelAssembly::add(const NewOp& op, const std::vector<NewTensor>& outputs) {
  for (const NewTensor& output : outputs)
    require_fits(output);
  return builder_.op(op, outputs);
}

std::vector<ValueId> ModelAssembly::op(std::string_view kind, const std::vector<ValueId>& inputs,
                                       const std::vector<NewTensor>& outputs) {
  NewOp request = started(kind, inputs);
  request.cost = cost(*request.kind, request, outputs, outputs.front().layout.shape);
  return add(request, outputs);
}

ValueId ModelAssembly::step(std::string_view kind, ValueId input, const NewTensor& output,
                            Duration cost, Duration gradient_cost) {
  NewOp request = started(kind, {input});
  request.cost = cost;
  request.gradient_cost = gradient_cost;
  return add(request, {output}).front();
}

ValueId ModelAssembly::product(std::string_view kind, ValueId left, ValueId right,
                               const NewTensor& output, const std::optional<Shape>& computed) {
  NewOp request = started(kind, {left, right});
  request.cost = cost(*request.kind, request, {output}, computed.value_or(output.layout.shape));
  request.gradient_cost = request.cost;
  return add(request, {output}).front();
}

std::vector<ValueId> ModelAssembly::fused_attention(const std::vector<ValueId>& inputs,
                                                    const std::vector<NewTensor>& outputs,
                                                    const Shape& computed) {
  NewOp request = started("attention", inputs);
  request.cost = cost(*find_op_kind("matmul"), request, outputs, computed);
  // Two products in forward; in backward five, the scores once more: 5/6 for each of three
  // gradients.
  request.gradient_cost = Duration{request.cost.ns / 6 * 5 + request.cost.ns % 6 * 5 / 6};
  return add(request, outputs);
}

ValueId ModelAssembly::view(std::string_view kind, ValueId base, std::string_view name,
                            const ViewOf& how) {
  NewTensor made = tensor(name, how.shape, layout(base).dtype);
  made.layout.stride = how.stride;
  made.layout.offset = how.offset;
  return builder_.op(started(kind, {base}), {made}).front();
}

ValueId ModelAssembly::checkpointed(bool is_one, std::string_view name, const Body& body) {
  if (!is_one) return body();
  RegionBegin region;
  region.name = prefix_ + std::string(name);
  const std::size_t begin = builder_.begin_region(std::move(region));
  const ValueId made = body();
  builder_.end_region(begin, builder_.read_since(begin + 1));
  return made;
}

ValueId ModelAssembly::layer(std::int64_t number, bool is_checkpointed, const Body& body) {
  const std::string name = layer_name(number);
  const auto named_body = [&] {
    prefix_ = name + ".";
    const ValueId made = body();
    prefix_.clear();
    return made;
  };
  return offloadable(name, [&] { return checkpointed(is_checkpointed, name, named_body); });
}

ValueId ModelAssembly::offloadable(const std::string& name, const Body& body) {
  const std::size_t begin = builder_.begin_offload(name, MemoryLevel::host);
  const ValueId made = body();
  builder_.end_offload(begin);
  return made;
}

ValueId ModelAssembly::excluded(bool is_one, std::string_view name,
                                const std::vector<ValueId>& inputs, const Body& body) {
  if (!is_one) return body();
  WrapperBegin wrapper;
  wrapper.name = prefix_ + std::string(name);
  const std::size_t begin = builder_.begin_wrapper(std::move(wrapper));
  const ValueId made = body();
  std::vector<WrapperBegin::Input> arguments;
  arguments.reserve(inputs.size());
  for (const ValueId input : inputs)
    arguments.push_back({input, "arg" + std::to_string(arguments.size())});
  builder_.end_wrapper(begin, std::move(arguments), std::vector{made});
  return made;
}

ValueId ModelAssembly::without_grad(const Body& body) {
  const std::size_t begin = builder_.begin_no_grad();
  const ValueId made = body();
  builder_.end_no_grad(begin);
  return made;
}

Program ModelAssembly::finish(ValueId last) {
  return builder_.finish(step("sum", last, tensor("loss", {}), {}, {}));
}

Program ModelAssembly::layered(
    std::int64_t n_layers, const Shape& shape, const std::vector<NewParam>& params,
    const std::function<ValueId(std::int64_t number, ValueId x)>& make_layer) {
  const ValueId x = input("x", shape);
  for (std::int64_t i = 0; i < n_layers; ++i)
    declare(i, params);
  ValueId at = own(x);
  for (std::int64_t i = 0; i < n_layers; ++i)
    at = make_layer(i, at);
  return finish(at);
}

}  // namespace remat
