#include "model/program_reader.hpp"

#include <algorithm>

#include "model/op_saves.hpp"
#include "model/op_values.hpp"
#include "model/releases.hpp"

namespace remat {
namespace {

constexpr std::size_t depth_max = 64;

std::string known_kinds() {
  std::string known;
  for (const OpKind& kind : op_kinds())
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  return known;
}

/// amount / rate, in nanoseconds, rounded up.
std::int64_t nanoseconds(std::int64_t amount, std::int64_t per_second) {
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = static_cast<Wide>(amount) * 1'000'000'000U;
  const Wide rate = static_cast<Wide>(per_second);
  const Wide ns = (scaled + rate - 1) / rate;
  return ns > static_cast<Wide>(INT64_MAX) ? INT64_MAX : static_cast<std::int64_t>(ns);
}

}  // namespace

Program ProgramReader::read() {
  program_place_.allow_only({"loss", "inputs", "params", "bodies", "stages"});
  read_leaves();
  const std::vector<JsonPlace> stages = program_place_.at("stages").items();
  if (stages.size() != 1) {
    program_place_.at("stages").fail("there are " + std::to_string(stages.size()) +
                                     " stages; expected one");
  }
  read_body(stages[0]);
  if (const auto loss = program_place_.find("loss")) forward_.root = named(*loss);
  add_releases(program_, forward_);
  program_.forwards.push_back(std::move(forward_));
  finish_program(program_);
  return std::move(program_);
}

void ProgramReader::read_leaves() {
  if (const auto inputs = program_place_.find("inputs")) {
    for (const std::string& name : inputs->keys()) {
      const ValueId input = add_leaf(name, inputs->at(name), BufferRole::input);
      if (program_.values[input].requires_grad) forward_.inputs.push_back(input);
    }
  }
  if (const auto params = program_place_.find("params")) {
    for (const std::string& name : params->keys())
      program_.parameters.push_back(add_leaf(name, params->at(name), BufferRole::param));
  }
}

ValueId ProgramReader::add_leaf(const std::string& name, const JsonPlace& place, BufferRole role) {
  place.allow_only({"dtype", "shape", "requires_grad"});
  if (names_.find(name) != names_.end())
    place.fail("'" + name + "' is an input too; expected another name for the parameter");
  TensorLayout layout;
  layout.dtype = place.has("dtype") ? place.at("dtype").text() : "f32";
  layout.shape = place.at("shape").integers(0);
  layout.stride = dense_strides(layout.shape);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(layout.shape), element_bytes(layout.dtype), &bytes))
    place.at("shape").fail("the tensor is larger than any memory; expected a smaller shape");
  const BufferId buffer = program_.buffers.push_back({bytes, role});
  const bool requires_grad =
      place.has("requires_grad") ? place.at("requires_grad").boolean() : role == BufferRole::param;
  const bool floats = is_floating(layout.dtype);
  const ValueId leaf = add_value(name, buffer, std::move(layout), requires_grad && floats);
  define(place, name, leaf);
  return leaf;
}

ValueId ProgramReader::add_value(const std::string& name, BufferId buffer, TensorLayout layout,
                                 bool requires_grad) {
  ProgramValue value;
  value.name = name;
  value.buffer = buffer;
  value.floating = is_floating(layout.dtype);
  value.layout = std::move(layout);
  value.requires_grad = requires_grad && value.floating;
  return program_.values.push_back(std::move(value));
}

void ProgramReader::define(const JsonPlace& place, const std::string& name, ValueId value) {
  if (name.empty()) place.fail("an empty name; expected one that a statement can use");
  names_.insert_or_assign(name, value);
}

ValueId ProgramReader::named(const JsonPlace& place) {
  const std::string name = place.text();
  const auto found = names_.find(name);
  if (found == names_.end()) {
    place.fail("'" + name +
               "' is used before it is made; expected an input, a parameter or an "
               "output of an earlier statement");
  }
  (hidden_.contains(name) ? read_hidden_ : read_openly_).insert(found->second.index());
  return found->second;
}

std::vector<ValueId> ProgramReader::all_named(const JsonPlace& list) {
  std::vector<ValueId> values;
  for (const JsonPlace& name : list.items())
    values.push_back(named(name));
  return values;
}

void ProgramReader::read_body(const JsonPlace& list) {
  if (++depth_ > depth_max) list.fail("bodies are nested more than 64 deep; expected fewer");
  for (const JsonPlace& statement : list.items())
    read_statement(statement);
  --depth_;
}

bool ProgramReader::wants_grad(const OpStatement& op) const {
  if (!op.kind->differentiable || !grad_) return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](ValueId input) { return program_.values[input].requires_grad; });
}

OpStatement ProgramReader::start_op(const JsonPlace& statement, const std::string& name) {
  OpStatement op;
  op.name = name;
  op.kind = find_op_kind(name);
  if (op.kind == nullptr)
    statement.fail("unknown op kind '" + name + "'; expected one of " + known_kinds());
  const auto attributes = statement.find("attrs");
  op.seed = op_seed(op.kind->name, attributes ? attributes->dumped() : std::string());
  if (const auto inputs = statement.find("in")) op.inputs = all_named(*inputs);
  const auto& kept = reading_->kept_ops;
  op.kept = std::find(kept.begin(), kept.end(), name) != kept.end();
  if (const auto keep = statement.find("keep")) op.kept = keep->boolean();
  return op;
}

TensorLayout ProgramReader::output_layout(const JsonPlace& statement, const OpStatement& op,
                                          std::size_t j) const {
  TensorLayout layout;
  layout.dtype = op.inputs.empty() ? "f32" : program_.values[op.inputs[0]].layout.dtype;
  if (const auto dtype = statement.find("dtype")) layout.dtype = dtype->text();
  if (const auto shape = statement.find("shape")) {
    layout.shape = shape->integers(0);
  } else {
    std::vector<Shape> inputs;
    std::string shown;
    for (const ValueId input : op.inputs) {
      inputs.push_back(program_.values[input].layout.shape);
      shown += (shown.empty() ? "" : ", ") + shown_shape(inputs.back());
    }
    InferredShape inferred = infer_shape(*op.kind, inputs);
    if (inferred.mismatch) {
      statement.fail("'" + op.name + "' cannot take shapes " + (shown.empty() ? "none" : shown) +
                     "; expected " + *inferred.mismatch);
    }
    layout.shape = std::move(inferred.shape);
  }
  // Statistics and indices beside the first output, one a row.
  if (j > 0 && !op.kind->outputs_are_parts && !layout.shape.empty()) layout.shape.back() = 1;
  layout.stride = dense_strides(layout.shape);
  if (const auto stride = statement.find("stride"); stride && !op.kind->makes_view) {
    layout.stride = stride->integers(0);
    if (layout.stride.size() != layout.shape.size()) {
      stride->fail("a stride for " + std::to_string(layout.stride.size()) +
                   " dimensions; expected one for each of " + shown_shape(layout.shape));
    }
  }
  if (op.kind->shape == ShapeRule::transpose && op.kind->makes_view && !op.inputs.empty()) {
    layout.stride = program_.values[op.inputs[0]].layout.stride;
    if (layout.stride.size() > 1)
      std::swap(layout.stride[layout.stride.size() - 1], layout.stride[layout.stride.size() - 2]);
  }
  return layout;
}

void ProgramReader::add_outputs(const JsonPlace& statement, OpStatement& op) {
  const JsonPlace outputs = statement.at("out");
  const std::vector<JsonPlace> names = outputs.items();
  if (names.empty()) outputs.fail("no output is named; expected one or more");
  const bool requires_grad = wants_grad(op);
  for (std::size_t j = 0; j < names.size(); ++j) {
    TensorLayout layout = output_layout(statement, op, j);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(spanned_elements(layout), element_bytes(layout.dtype), &bytes))
      names[j].fail("the tensor is larger than any memory; expected a smaller shape");
    const bool is_view = op.kind->makes_view && !op.inputs.empty();
    if (is_view) layout.offset = program_.values[op.inputs[0]].layout.offset;
    const BufferId buffer = is_view ? program_.values[op.inputs[0]].buffer
                                    : program_.buffers.push_back({bytes, BufferRole::none});
    const std::string name = names[j].text();
    for (std::size_t k = 0; k < j; ++k) {
      if (names[k].text() == name)
        names[j].fail("'" + name + "' is named twice; expected a name for each output");
    }
    const bool is_part = j == 0 || op.kind->outputs_are_parts;
    op.outputs.push_back(add_value(name, buffer, std::move(layout), requires_grad && is_part));
    define(names[j], name, op.outputs.back());
  }
}

void ProgramReader::add_saves(const JsonPlace& statement, OpStatement& op) {
  op.makes_node = wants_grad(op);
  const auto own = statement.find("saves");
  if (own) {
    for (const JsonPlace& name : own->items()) {
      const std::string text = name.text();
      const auto found = names_.find(text);
      const auto in = found == names_.end()
                          ? op.inputs.end()
                          : std::find(op.inputs.begin(), op.inputs.end(), found->second);
      const auto out = found == names_.end()
                           ? op.outputs.end()
                           : std::find(op.outputs.begin(), op.outputs.end(), found->second);
      if (in == op.inputs.end() && out == op.outputs.end())
        name.fail("'" + text + "' cannot be saved here; expected an input or output of the op");
      const bool is_output = out != op.outputs.end();
      const auto at = is_output ? out - op.outputs.begin() : in - op.inputs.begin();
      op.saves.push_back({found->second, is_output, save_factor(is_output, at)});
    }
    // Inputs are packed before the kernel runs, whatever the order in which they are named.
    std::stable_partition(op.saves.begin(), op.saves.end(),
                          [](const Save& save) { return !save.after_op; });
  } else if (op.makes_node) {
    op.saves = saves_by_table(program_, op);
  }
  if (!op.makes_node) op.saves.clear();
}

void ProgramReader::add_cost(const JsonPlace& statement, OpStatement& op) {
  if (const auto cost = statement.find("cost_ns")) {
    op.cost = {cost->integer(0)};
    return;
  }
  if (op.kind->makes_view || op.outputs.empty()) return;
  std::vector<Shape> shapes;
  std::int64_t bytes = 0;
  const auto add_bytes = [&](ValueId value) {
    const TensorLayout& layout = program_.values[value].layout;
    const std::int64_t more = element_bytes_of(layout);
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  };
  for (const ValueId input : op.inputs) {
    shapes.push_back(program_.values[input].layout.shape);
    add_bytes(input);
  }
  std::for_each(op.outputs.begin(), op.outputs.end(), add_bytes);
  const std::int64_t flops =
      flops_of(*op.kind, shapes, program_.values[op.outputs[0]].layout.shape);
  op.cost = {std::max(nanoseconds(flops, reading_->flops_per_second),
                      nanoseconds(bytes, reading_->bytes_per_second))};
}

void ProgramReader::read_op(const JsonPlace& statement, std::string_view key) {
  statement.allow_only(
      {key, "in", "out", "attrs", "keep", "dtype", "shape", "stride", "saves", "cost_ns"});
  OpStatement op = start_op(statement, statement.at(key).text());
  add_outputs(statement, op);
  if (op.kind->makes_view && !op.inputs.empty()) check_views(statement, op);
  add_saves(statement, op);
  add_cost(statement, op);
  push(std::move(op));
}

Program read_program(const JsonPlace& place, const ProgramReading& reading) {
  return ProgramReader(place, reading).read();
}

}  // namespace remat
