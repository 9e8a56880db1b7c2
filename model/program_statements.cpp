#include <algorithm>

#include "model/listed.hpp"
#include "model/program_reader.hpp"

// The statements of a scenario that are no plain op.

namespace remat {

void ProgramReader::read_statement(const JsonPlace& statement) {
  if (statement.has("op")) return read_op(statement, "op");
  if (statement.has("random")) {
    read_op(statement, "random");
    const auto& op = std::get<OpStatement>(builder_.forward().statements.back());
    if (!op.kind->draws) {
      statement.at("random").fail("'" + op.name +
                                  "' draws no random number; expected dropout, rand, bernoulli or "
                                  "the like");
    }
    return;
  }
  if (statement.has("in_place")) return read_in_place(statement);
  if (statement.has("collective")) return read_collective(statement);
  if (statement.has("on_ranks")) return read_on_ranks(statement);
  if (statement.has("update")) return read_update(statement);
  if (statement.has("view")) return read_view(statement);
  if (statement.has("container")) return read_container(statement);
  if (statement.has("checkpoint")) return read_region(statement, checkpoint_of(statement));
  if (statement.has("unit")) return read_region(statement, unit_of(statement));
  if (statement.has("exclude")) return read_excluded(statement);
  if (statement.has("region")) return read_remat_region(statement);
  if (statement.has("needs_tensor")) return read_needs_tensor(statement);
  if (statement.has("mark")) {
    statement.allow_only({"mark"});
    return builder_.mark(statement.at("mark").text());
  }
  if (statement.has("compiled")) return read_compiled(statement);
  if (statement.has("offload")) return read_offload(statement);
  if (statement.has("call")) return read_call(statement);
  if (statement.has("branch")) return read_branch(statement);
  if (statement.has("no_grad")) return read_no_grad(statement);
  if (statement.has("catch")) return read_catch(statement);
  if (statement.has("raise")) return read_raise(statement);
  if (statement.has("side_effect")) {
    statement.allow_only({"side_effect"});
    return builder_.side_effect(statement.at("side_effect").text());
  }
  statement.fail(
      "this statement says nothing that is known; expected one of the keys op, view, in_place, "
      "random, collective, on_ranks, container, checkpoint, unit, exclude, region, needs_tensor, "
      "mark, compiled, "
      "offload, call, branch, no_grad, catch, side_effect, update, raise");
}

void ProgramReader::read_in_place(const JsonPlace& statement) {
  statement.allow_only({"in_place", "in", "attrs", "keep", "saves", "cost_ns", "gradient_cost_ns"});
  NewOp op = start_op(statement, statement.at("in_place").text());
  if (op.inputs.empty()) statement.fail("nothing is written; expected a tensor under 'in'");
  if (op.kind->preserves_value) {
    add_cost(statement, op, {});
    builder_.op(op, {});
    return;
  }
  const JsonPlace target = statement.at("in").items().front();
  const ProgramValue& old = value(op.inputs.front());
  const bool is_leaf = builder_.program().buffers[old.buffer].role != BufferRole::none;
  if (old.requires_grad && is_leaf && no_grad_depth_ == 0) {
    target.fail("'" + old.name +
                "' is a leaf that requires grad; expected no_grad around what writes it in place");
  }
  choose_saves(statement, op, {target.text()});
  add_cost(statement, op, {old.layout});
  builder_.in_place(op);
}

/// A write by the caller: an optimizer's, or a harness's between forward and backward.
void ProgramReader::read_update(const JsonPlace& statement) {
  statement.allow_only({"update"});
  builder_.update(named(statement.at("update")));
}

void ProgramReader::read_view(const JsonPlace& statement) {
  statement.allow_only({"view", "in", "out", "dtype", "shape", "stride", "offset"});
  const NewOp op = start_op(statement, statement.at("view").text());
  if (!op.kind->makes_view) {
    statement.at("view").fail("'" + std::string(op.kind->name) +
                              "' makes no view; expected view, t, transpose, slice, select, expand "
                              "or the like");
  }
  const auto dtype = statement.find("dtype");
  if (op.kind->name == "view_dtype" && !dtype)
    statement.fail("a view_dtype says no type; expected 'dtype'");
  if (dtype && !op.inputs.empty()) check_view_dtype(*dtype, op);
  add(statement, op, new_tensors(statement, op));
}

/// Only one kind of view reads the bytes as another type, and then one element as one.
void ProgramReader::check_view_dtype(const JsonPlace& dtype, const NewOp& op) const {
  const std::string& base = value(op.inputs[0]).layout.dtype;
  dtype_at(dtype);
  if (op.kind->name != "view_dtype" && dtype.text() != base) {
    dtype.fail("a " + std::string(op.kind->name) + " of a tensor of " + base + " is one of " +
               base + "; expected that, or view_dtype");
  }
  if (element_bytes(dtype.text()) != element_bytes(base)) {
    dtype.fail("an element of " + dtype.text() + " has other bytes than one of " + base +
               "; expected a type of that size");
  }
}

/// A view lies within its storage.
void ProgramReader::check_view(const JsonPlace& statement, const NewOp& op,
                               const TensorLayout& layout) const {
  if (layout.stride.size() != layout.shape.size()) {
    statement.fail("a stride for " + std::to_string(layout.stride.size()) +
                   " dimensions; expected one for each of " + shown_shape(layout.shape));
  }
  const std::int64_t n_spanned = spanned_elements(layout);
  if (n_spanned == 0) return;
  const std::int64_t end = saturated_sum(n_spanned, layout.offset);
  const BufferId buffer = value(op.inputs[0]).buffer;
  const std::int64_t held = builder_.program().buffers[buffer].bytes / element_bytes(layout.dtype);
  if (end > held) {
    statement.fail("the view reaches element " + std::to_string(end - 1) + " of a storage of " +
                   std::to_string(held) + "; expected it to lie within");
  }
}

/// Tensors put in a dict or a list: a region gets them without the protocol seeing them.
void ProgramReader::read_container(const JsonPlace& statement) {
  statement.allow_only({"container", "in"});
  const std::string name = statement.at("container").text();
  for (const JsonPlace& item : statement.at("in").items()) {
    const ValueId value = known(item);  // to put it in is not to read it
    const std::string inside = name + "." + item.text();
    define(item, inside, value);
    // What came out of a region in one container and goes into another was never in the open.
    const bool was_hidden = hidden_.contains(item.text()) && !is_hidden(item.text());
    if (was_hidden) builder_.put_in_container(value);
    hidden_[inside] = innermost_region();
  }
}

void ProgramReader::read_region(const JsonPlace& statement, RegionBegin region) {
  std::optional<std::vector<ValueId>> own;
  if (const auto inputs = statement.find("in")) {
    own.emplace();
    for (const JsonPlace& input : inputs->items()) {
      const ValueId value = named(input);
      if (!is_in_container_here(input.text())) own->push_back(value);
    }
  }
  const std::size_t begin = builder_.begin_region(std::move(region));
  open_regions_.push_back(begin);
  read_body(statement.at("body"));
  open_regions_.pop_back();
  if (!own) {
    own.emplace();
    for (const ValueId value : builder_.read_since(begin + 1)) {
      const bool is_hidden =
          read_hidden_.contains(value.index()) && !read_openly_.contains(value.index());
      if (!is_hidden) own->push_back(value);
    }
  }
  builder_.end_region(begin, *own);
}

/// The tensor leaves of an argument: a name, or a list or an object of arguments.
void ProgramReader::read_leaves_of(const JsonPlace& argument, const std::string& path,
                                   std::vector<WrapperBegin::Input>& leaves) {
  if (argument.is_array()) {
    std::size_t i = 0;
    for (const JsonPlace& item : argument.items())
      read_leaves_of(item, path + "[" + std::to_string(i++) + "]", leaves);
  } else if (argument.is_object()) {
    for (const std::string& key : argument.keys())
      read_leaves_of(argument.at(key), std::string(path).append(".").append(key), leaves);
  } else {
    leaves.push_back({named(argument), path});
  }
}

void ProgramReader::read_excluded(const JsonPlace& statement) {
  statement.allow_only({"exclude", "in", "kwargs", "out", "save_output", "hands_over", "body"});
  WrapperBegin wrapper;
  wrapper.name = statement.at("exclude").text();
  if (const auto flag = statement.find("save_output")) wrapper.save_output = flag->boolean();
  if (const auto flag = statement.find("hands_over")) wrapper.hands_over = flag->boolean();
  read_wrapper(statement, std::move(wrapper));
}

/// A region of torch_remat.
void ProgramReader::read_remat_region(const JsonPlace& statement) {
  statement.allow_only({"region", "recompute", "in", "kwargs", "out", "body"});
  WrapperBegin region;
  region.name = statement.at("region").text();
  if (region.name.empty()) statement.at("region").fail("a region without a name; expected one");
  region.policy = statement.at("recompute").boolean() ? WrapperBegin::Policy::recompute
                                                      : WrapperBegin::Policy::save;
  read_wrapper(statement, std::move(region));
}

void ProgramReader::read_needs_tensor(const JsonPlace& statement) {
  statement.allow_only({"needs_tensor"});
  builder_.needs_tensor(named(statement.at("needs_tensor")));
}

/// Without `in` the arguments are what the body reads, without `out` it returns what later
/// statements read.
void ProgramReader::read_wrapper(const JsonPlace& statement, WrapperBegin wrapper) {
  const auto arguments = statement.find("in");
  std::vector<WrapperBegin::Input> inputs;
  if (arguments) {
    std::size_t i = 0;
    for (const JsonPlace& argument : arguments->items())
      read_leaves_of(argument, "arg" + std::to_string(i++), inputs);
  }
  if (const auto named_ones = statement.find("kwargs")) {
    for (const std::string& key : named_ones->keys())
      read_leaves_of(named_ones->at(key), "kwarg." + key, inputs);
  }
  const std::size_t begin = builder_.begin_wrapper(std::move(wrapper));
  read_body(statement.at("body"));
  if (!arguments) {
    std::size_t i = 0;
    for (const ValueId value : builder_.read_since(begin + 1))
      inputs.push_back({value, "arg" + std::to_string(i++)});
  }
  std::optional<std::vector<ValueId>> outputs;
  if (const auto out = statement.find("out")) {
    std::vector<WrapperBegin::Input> leaves;
    read_leaves_of(*out, "", leaves);
    outputs.emplace();
    for (const WrapperBegin::Input& leaf : leaves)
      outputs->push_back(leaf.value);
  }
  builder_.end_wrapper(begin, std::move(inputs), std::move(outputs));
}

void ProgramReader::read_call(const JsonPlace& statement) {
  statement.allow_only({"call", "in", "out"});
  const std::string name = statement.at("call").text();
  if (!program_place_.has("bodies") || !program_place_.at("bodies").has(name)) {
    statement.at("call").fail("there is no body '" + name + "'; expected one under " +
                              program_place_.pointer() + "/bodies");
  }
  if (std::find(calling_.begin(), calling_.end(), name) != calling_.end()) {
    statement.at("call").fail("the body '" + name +
                              "' calls itself: a cycle; expected calls of other bodies");
  }
  const JsonPlace body = program_place_.at("bodies").at(name);
  body.allow_only({"in", "out", "body"});
  const std::vector<std::string> wants = body.at("in").texts();
  const std::vector<ValueId> gets = all_named(statement.at("in"));
  const std::vector<std::string> makes = body.at("out").texts();
  const std::vector<JsonPlace> results = statement.at("out").items();
  if (wants.size() != gets.size() || makes.size() != results.size()) {
    statement.fail("the call of '" + name + "' has " + std::to_string(gets.size()) +
                   " inputs and " + std::to_string(results.size()) + " outputs; expected " +
                   std::to_string(wants.size()) + " and " + std::to_string(makes.size()));
  }
  // Inside, only parameters and what it was given have names.
  Names outside = names_;
  for (std::size_t i = 0; i < wants.size(); ++i)
    names_.insert_or_assign(wants[i], gets[i]);
  calling_.push_back(name);
  read_body(body.at("body"));
  calling_.pop_back();
  std::vector<ValueId> made;
  for (const JsonPlace& output : body.at("out").items())
    made.push_back(named(output));
  names_ = std::move(outside);
  for (std::size_t i = 0; i < made.size(); ++i)
    define(results[i], results[i].text(), made[i]);
}

void ProgramReader::read_branch(const JsonPlace& statement) {
  statement.allow_only({"branch", "body"});
  const std::string when = statement.at("branch").text();
  if (when != "forward" && when != "replay")
    statement.at("branch").fail("'" + when + "' is no kind of run; expected forward or replay");
  const std::size_t begin = builder_.begin_branch(when == "replay");
  // What a replay makes, the forward has not: its names end with it.
  Names outside = names_;
  Names stood = names_;
  for (auto& [name, value] : stood)
    value = builder_.since_write(value);
  read_body(statement.at("body"));
  if (when == "replay") {
    for (const auto& [name, value] : outside) {
      const ValueId inside = names_.at(name);
      if (inside != value) builder_.bind(builder_.since_write(inside), stood.at(name));
    }
    names_ = std::move(outside);
  }
  builder_.end_branch(begin);
}

void ProgramReader::read_no_grad(const JsonPlace& statement) {
  statement.allow_only({"no_grad"});
  const std::size_t begin = builder_.begin_no_grad();
  ++no_grad_depth_;
  read_body(statement.at("no_grad"));
  --no_grad_depth_;
  builder_.end_no_grad(begin);
}

void ProgramReader::read_compiled(const JsonPlace& statement) {
  statement.allow_only({"compiled"});
  const std::size_t begin = builder_.begin_compiled();
  read_body(statement.at("compiled"));
  builder_.end_compiled(begin);
}

/// Saved tensors go by the hooks around an op: within another block those are the block's.
void ProgramReader::read_offload(const JsonPlace& statement) {
  statement.allow_only({"offload", "to", "body"});
  const JsonPlace name = statement.at("offload");
  if (depth_ > 1) {
    name.fail("offload group '" + name.text() +
              "' lies in another block; expected it among the stage's own statements");
  }
  MemoryLevel level = MemoryLevel::host;
  if (const auto to = statement.find("to")) {
    const auto* const known =
        std::find(memory_level_names.begin(), memory_level_names.end(), to->text());
    if (known == memory_level_names.end()) {
      to->fail("unknown level '" + to->text() + "'; expected one of " + listed(memory_level_names));
    }
    level = static_cast<MemoryLevel>(known - memory_level_names.begin());
  }
  const std::size_t begin = builder_.begin_offload(name.text(), level);
  read_body(statement.at("body"));
  builder_.end_offload(begin);
}

void ProgramReader::read_catch(const JsonPlace& statement) {
  statement.allow_only({"catch"});
  const std::size_t begin = builder_.begin_catch();
  read_body(statement.at("catch"));
  builder_.end_catch(begin);
}

void ProgramReader::read_raise(const JsonPlace& statement) {
  statement.allow_only({"raise", "in", "times"});
  Raise raise;
  raise.type = statement.at("raise").text();
  const std::string when = statement.has("in") ? statement.at("in").text() : "always";
  if (when == "forward") {
    raise.runs = Raise::Runs::forward;
  } else if (when == "replay") {
    raise.runs = Raise::Runs::replay;
  } else if (when == "pack") {
    raise.runs = Raise::Runs::pack;
  } else if (when == "unpack") {
    raise.runs = Raise::Runs::unpack;
  } else if (when != "always") {
    statement.at("in").fail("'" + when +
                            "' is no kind of run and no hook; expected forward, replay, always, "
                            "pack or unpack");
  }
  if (const auto times = statement.find("times")) raise.times = times->integer(1);
  builder_.raise(std::move(raise));
}

}  // namespace remat
