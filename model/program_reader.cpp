#include "model/program_reader.hpp"

#include <algorithm>

#include "model/builders/program_builders.hpp"
#include "model/listed.hpp"

namespace remat {
namespace {

constexpr std::size_t depth_max = 64;

/// What a list with an entry for each output has for the j-th.
JsonPlace one_of(const JsonPlace& list, std::size_t j) {
  const std::vector<JsonPlace> each = list.items();
  if (each.size() <= j) {
    const std::string& key = list.pointer();
    list.fail(std::to_string(each.size()) + " " + key.substr(key.rfind('/') + 1) +
              "; expected one for each output");
  }
  return each[j];
}

}  // namespace

std::string dtype_at(const JsonPlace& place) {
  std::string dtype = place.text();
  const std::vector<std::string> known = known_dtypes();
  if (std::find(known.begin(), known.end(), dtype) != known.end()) return dtype;
  place.fail("unknown dtype '" + dtype + "'; expected one of " + listed(known));
}

Program ProgramReader::read() {
  program_place_.allow_only({"loss", "inputs", "params", "bodies", "stages"});
  builder_.set_groups(reading_->groups);
  read_leaves();
  const std::vector<JsonPlace> stages = program_place_.at("stages").items();
  if (stages.size() != 1) {
    program_place_.at("stages").fail("there are " + std::to_string(stages.size()) +
                                     " stages; expected one");
  }
  read_body(stages[0]);
  std::optional<ValueId> root;
  if (const auto loss = program_place_.find("loss")) root = named(*loss);
  return builder_.finish(root);
}

void ProgramReader::read_leaves() {
  if (const auto inputs = program_place_.find("inputs")) {
    for (const std::string& name : inputs->keys())
      add_leaf(name, inputs->at(name), BufferRole::input);
  }
  if (const auto params = program_place_.find("params")) {
    for (const std::string& name : params->keys())
      add_leaf(name, params->at(name), BufferRole::param);
  }
}

void ProgramReader::add_leaf(const std::string& name, const JsonPlace& place, BufferRole role) {
  place.allow_only({"dtype", "shape", "requires_grad"});
  if (names_.find(name) != names_.end())
    place.fail("'" + name + "' is an input too; expected another name for the parameter");
  TensorLayout layout;
  layout.dtype = place.has("dtype") ? dtype_at(place.at("dtype")) : "f32";
  layout.shape = place.at("shape").integers(0);
  layout.stride = dense_strides(layout.shape);
  if (is_larger_than_memory(layout))
    place.at("shape").fail("the tensor is larger than any memory; expected a smaller shape");
  const bool requires_grad =
      place.has("requires_grad") ? place.at("requires_grad").boolean() : role == BufferRole::param;
  define(place, name, builder_.leaf(name, layout, role, requires_grad));
}

void ProgramReader::define(const JsonPlace& place, const std::string& name, ValueId value) {
  if (name.empty()) place.fail("an empty name; expected one that a statement can use");
  names_.insert_or_assign(name, value);
}

ValueId ProgramReader::known(const JsonPlace& place) const {
  const std::string name = place.text();
  const auto found = names_.find(name);
  if (found == names_.end()) {
    place.fail("'" + name +
               "' is used before it is made; expected an input, a parameter or an "
               "output of an earlier statement");
  }
  return builder_.since_write(found->second);
}

ValueId ProgramReader::named(const JsonPlace& place) {
  const ValueId value = known(place);
  if (is_hidden(place.text())) {
    read_hidden_.insert(value.index());
  } else {
    read_openly_.insert(value.index());
    if (hidden_.contains(place.text())) builder_.put_in_container(value);  // a region's result
  }
  return value;
}

/// The name stands for what lies in a container. What a region has put in one is taken out again by
/// who called it.
bool ProgramReader::is_hidden(const std::string& name) const {
  const auto hidden = hidden_.find(name);
  if (hidden == hidden_.end()) return false;
  return hidden->second == no_region || std::find(open_regions_.begin(), open_regions_.end(),
                                                  hidden->second) != open_regions_.end();
}

/// The container was made where the name is given: it is handed on as it is. From one that was
/// handed in, or came out of a region, the tensor is taken.
bool ProgramReader::is_in_container_here(const std::string& name) const {
  const auto hidden = hidden_.find(name);
  return hidden != hidden_.end() && hidden->second == innermost_region();
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

NewOp ProgramReader::start_op(const JsonPlace& statement, const std::string& name) {
  NewOp op;
  op.kind = find_op_kind(name);
  if (op.kind == nullptr) {
    statement.fail("unknown op kind '" + name + "'; expected one of " +
                   listed(op_kinds(), &OpKind::name));
  }
  if (const auto attributes = statement.find("attrs")) op.attributes = attributes->dumped();
  if (const auto inputs = statement.find("in")) op.inputs = all_named(*inputs);
  const bool is_collective = op.kind->exchange != Exchange::none;
  if (is_collective != statement.has("collective")) {
    statement.fail("'" + name + "' is " + (is_collective ? "a" : "no") +
                   " collective; expected it under the key " +
                   (is_collective ? "collective" : "op, view, in_place or random"));
  }
  op.kept = is_kept(*reading_, name);
  if (const auto keep = statement.find("keep")) op.kept = keep->boolean();
  return op;
}

TensorLayout ProgramReader::output_layout(const JsonPlace& statement, const NewOp& op,
                                          std::size_t j) const {
  TensorLayout layout;
  const bool is_beside = j > 0 && !op.kind->outputs_are_parts;
  layout.dtype = op.inputs.empty() ? "f32" : value(op.inputs[0]).layout.dtype;
  if (is_beside && op.kind->beside == Beside::indices) layout.dtype = "i64";
  if (is_beside && op.kind->beside == Beside::mask) layout.dtype = "bool";
  if (const auto dtype = statement.find("dtype")) layout.dtype = dtype_at(*dtype);
  if (const auto dtypes = statement.find("dtypes")) layout.dtype = dtype_at(one_of(*dtypes, j));
  const auto shapes = statement.find("shapes");
  if (shapes) {
    layout.shape = one_of(*shapes, j).integers(0);
  } else if (const auto shape = statement.find("shape")) {
    layout.shape = shape->integers(0);
  } else {
    std::vector<Shape> inputs;
    std::string shown;
    for (const ValueId input : op.inputs) {
      inputs.push_back(value(input).layout.shape);
      shown += (shown.empty() ? "" : ", ") + shown_shape(inputs.back());
    }
    InferredShape inferred = infer_shape(*op.kind, inputs);
    if (inferred.mismatch) {
      statement.fail("'" + std::string(op.kind->name) + "' cannot take shapes " +
                     (shown.empty() ? "none" : shown) + "; expected " + *inferred.mismatch);
    }
    layout.shape = std::move(inferred.shape);
  }
  if (is_beside && !shapes) layout.shape = shape_beside(op.kind->beside, layout.shape);
  layout.stride = dense_strides(layout.shape);
  if (const auto stride = statement.find("stride"); stride && !op.kind->makes_view) {
    layout.stride = stride->integers(0);
    if (layout.stride.size() != layout.shape.size()) {
      stride->fail("a stride for " + std::to_string(layout.stride.size()) +
                   " dimensions; expected one for each of " + shown_shape(layout.shape));
    }
  }
  if (!op.kind->makes_view || op.inputs.empty()) return layout;
  layout.offset = value(op.inputs[0]).layout.offset;
  if (op.kind->shape == ShapeRule::transpose) {
    layout.stride = value(op.inputs[0]).layout.stride;
    if (layout.stride.size() > 1)
      std::swap(layout.stride[layout.stride.size() - 1], layout.stride[layout.stride.size() - 2]);
  }
  if (const auto stride = statement.find("stride")) layout.stride = stride->integers(0);
  if (const auto offset = statement.find("offset")) layout.offset = offset->integer(0);
  return layout;
}

std::vector<NewTensor> ProgramReader::new_tensors(const JsonPlace& statement, const NewOp& op) {
  const JsonPlace outputs = statement.at("out");
  const std::vector<JsonPlace> names = outputs.items();
  if (names.empty()) outputs.fail("no output is named; expected one or more");
  std::vector<NewTensor> made;
  for (std::size_t j = 0; j < names.size(); ++j) {
    TensorLayout layout = output_layout(statement, op, j);
    if (op.kind->makes_view && !op.inputs.empty()) {
      check_view(statement, op, layout);
    } else if (is_larger_than_memory(layout)) {
      names[j].fail("the tensor is larger than any memory; expected a smaller shape");
    }
    std::string name = names[j].text();
    for (const NewTensor& other : made) {
      if (other.name == name)
        names[j].fail("'" + name + "' is named twice; expected a name for each output");
    }
    made.push_back({std::move(layout), std::move(name)});
  }
  return made;
}

void ProgramReader::add(const JsonPlace& statement, const NewOp& op,
                        const std::vector<NewTensor>& outputs) {
  const std::vector<ValueId> made = builder_.op(op, outputs);
  const std::vector<JsonPlace> names = statement.at("out").items();
  for (std::size_t j = 0; j < made.size(); ++j)
    define(names[j], outputs[j].name, made[j]);
}

void ProgramReader::choose_saves(const JsonPlace& statement, NewOp& op,
                                 const std::vector<std::string>& output_names) const {
  const auto own = statement.find("saves");
  if (!own) return;
  op.saves.emplace();
  for (const JsonPlace& name : own->items()) {
    const std::string text = name.text();
    const auto out = std::find(output_names.begin(), output_names.end(), text);
    if (out != output_names.end()) {
      op.saves->push_back({true, static_cast<std::size_t>(out - output_names.begin())});
      continue;
    }
    const auto known = names_.find(text);
    const auto in = known == names_.end() ? op.inputs.end()
                                          : std::find(op.inputs.begin(), op.inputs.end(),
                                                      builder_.since_write(known->second));
    if (in == op.inputs.end())
      name.fail("'" + text + "' cannot be saved here; expected an input or output of the op");
    op.saves->push_back({false, static_cast<std::size_t>(in - op.inputs.begin())});
  }
}

void ProgramReader::add_cost(const JsonPlace& statement, NewOp& op,
                             const std::vector<TensorLayout>& outputs) {
  if (const auto gradient = statement.find("gradient_cost_ns"))
    op.gradient_cost = Duration{gradient->integer(0)};
  if (const auto cost = statement.find("cost_ns")) {
    op.cost = {cost->integer(0)};
    return;
  }
  if (outputs.empty()) return;
  std::vector<TensorLayout> inputs;
  for (const ValueId input : op.inputs)
    inputs.push_back(value(input).layout);
  op.cost = cost_of(*op.kind, inputs, outputs, outputs[0].shape, reading_->rates);
}

void ProgramReader::read_op(const JsonPlace& statement, std::string_view key) {
  statement.allow_only({key, "in", "out", "attrs", "keep", "dtype", "dtypes", "shape", "shapes",
                        "stride", "replay_offset", "saves", "cost_ns", "gradient_cost_ns"});
  NewOp op = start_op(statement, statement.at(key).text());
  if (op.kind->preserves_value) {
    statement.at(key).fail("'" + std::string(op.kind->name) +
                           "' makes no tensor; expected it under 'in_place'");
  }
  const std::vector<NewTensor> outputs = new_tensors(statement, op);
  std::vector<TensorLayout> layouts;
  std::vector<std::string> names;
  for (const NewTensor& made : outputs) {
    layouts.push_back(made.layout);
    names.push_back(made.name);
  }
  if (const auto moved = statement.find("replay_offset")) {
    if (op.kind->makes_view)
      moved->fail("a view lies where its base does; expected an op that makes its own bytes");
    op.replay_offset = moved->integer(0);
  }
  choose_saves(statement, op, names);
  add_cost(statement, op, layouts);
  add(statement, op, outputs);
}

/// A checkpointed region as it begins. torch refuses a reentrant one that has a policy: its forward
/// makes no graph that the policy could spare a replay.
RegionBegin ProgramReader::checkpoint_of(const JsonPlace& statement) const {
  statement.allow_only(
      {"checkpoint", "in", "body", "owner", "reentrant", "early_stop", "preserve_rng"});
  RegionBegin region;
  region.name = statement.at("checkpoint").text();
  if (const auto owner = statement.find("owner")) region.owner = owner->text();
  if (const auto flag = statement.find("reentrant")) {
    region.reentrant = flag->boolean();
    if (region.reentrant && reading_->keeps_units_of && reading_->keeps_units_of(region.owner)) {
      flag->fail(
          "a reentrant region keeps nothing for its replay, and save units are selected for " +
          (region.owner.empty() ? std::string("its model") : "its model '" + region.owner + "'") +
          "; expected false, or no selection for the model");
    }
  }
  if (const auto flag = statement.find("early_stop")) region.early_stop = flag->boolean();
  if (const auto flag = statement.find("preserve_rng")) region.preserves_rng = flag->boolean();
  return region;
}

RegionBegin ProgramReader::unit_of(const JsonPlace& statement) {
  statement.allow_only({"unit", "in", "body"});
  RegionBegin region;
  region.name = statement.at("unit").text();
  region.kind = RegionKind::unit;
  return region;
}

bool is_kept(const ProgramReading& reading, std::string_view kind) {
  const std::vector<std::string>& kept = reading.kept_ops;
  return std::find(kept.begin(), kept.end(), kind) != kept.end();
}

Program read_program(const JsonPlace& place, const ProgramReading& reading) {
  if (place.has("builder")) return build_program(place, reading);
  return ProgramReader(place, reading).read();
}

}  // namespace remat
