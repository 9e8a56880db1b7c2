#include <algorithm>
#include <optional>
#include <utility>

#include "properties/body_generator.hpp"
#include "properties/unit_generator.hpp"

// Excluded regions in the body of a checkpointed one.

namespace remat {
namespace {

WrapperBegin::Input leaf_at(ValueId value, const std::string& path) {
  return {value, path};
}

}  // namespace

/// A chain of excluded regions: each but the last hands all that it returns to the next, and keeps
/// none of it.
void BodyGenerator::write_excluded() {
  const std::uint64_t n = draws(Feature::chains) ? 2 + tape_->choose(3) : 1;
  std::vector<ValueId> handed;
  for (std::uint64_t i = 0; i < n; ++i)
    handed = write_wrapper(handed, i + 1 == n);
  std::optional<ValueId> constant;
  for (const ValueId output : handed) {
    if (!builder_->value(output).requires_grad) {
      constant = output;
    } else if (std::find(pool_.begin(), pool_.end(), output) == pool_.end()) {
      pool_.push_back(output);
    }
  }
  if (constant) write_op("mul", {pick(), *constant});
}

/// The arguments: what the wrapper before handed on, else what there is to read; sometimes within a
/// list, a dict or by keyword.
std::vector<WrapperBegin::Input> BodyGenerator::choose_arguments(
    const std::vector<ValueId>& handed) {
  std::vector<WrapperBegin::Input> inputs;
  std::size_t n_arguments = 1;
  if (handed.size() > 1) {
    for (std::size_t i = 0; i < handed.size(); ++i)
      inputs.push_back(leaf_at(handed[i], "arg0[" + std::to_string(i) + "]"));
  } else {
    inputs.push_back(leaf_at(handed.empty() ? pick() : handed[0], "arg0"));
  }
  for (std::uint64_t more = tape_->choose(3); more > 0; --more) {
    const ValueId value = pick_or_param();
    const std::uint64_t form = draws(Feature::nested_arguments) ? tape_->choose(3) : 3;
    const std::string number = std::to_string(form == 2 ? more : n_arguments++);
    inputs.push_back(leaf_at(value, form == 0   ? "arg" + number + "[0]"
                                    : form == 1 ? "arg" + number + ".k[0]"
                                    : form == 2 ? "kwarg.k" + number
                                                : "arg" + number));
  }
  std::stable_partition(inputs.begin(), inputs.end(), [](const WrapperBegin::Input& input) {
    return input.path.starts_with("arg");
  });
  return inputs;
}

/// A tensor that nobody but the excluded region reads: it may write it, and is the last to see it.
/// With views, it may lie elsewhere in a replay, or leave holes in its storage, where something
/// else lies in each run of the body: not within nested regions, whose excluded bodies the replay
/// of the region around runs again.
ValueId BodyGenerator::write_argument() {
  TensorLayout layout = layout_after(pick());
  const bool may_differ = has(Feature::views) && !has(Feature::nesting);
  const std::uint64_t form = may_differ ? tape_->choose(3) : 0;
  if (form == 1) {
    layout.stride = dense_strides(layout.shape);
    for (std::int64_t& stride : layout.stride)
      stride *= 2;
  }
  NewOp op{&op_kind_named("neg"), {pick()}, next_cost()};
  if (form == 2) op.replay_offset = 7;
  return builder_->op(op, {{layout}})[0];
}

/// What the body does to an argument of its own before anything else: it looks at its storage from
/// end to end, or writes it.
void BodyGenerator::use_argument(ValueId argument) {
  TensorLayout layout = builder_->value(argument).layout;
  if (has_holes(layout)) {
    layout.shape = {spanned_elements(layout)};
    layout.stride = {1};
    pool_.push_back(builder_->op({&op_kind_named("as_strided"), {argument}}, {{layout}})[0]);
  } else if (has(Feature::views) && !layout.shape.empty() && layout.shape[0] > 1 &&
             tape_->choose(2) == 1) {
    layout.shape[0] -= 1;
    layout.offset += layout.stride[0];
    pool_.push_back(builder_->op({&op_kind_named("slice"), {argument}}, {{layout}})[0]);
  } else if (draws(Feature::in_place)) {
    builder_->in_place({&op_kind_named("scale"), {argument}, next_cost()});
    refresh_pool();
  }
}

std::string BodyGenerator::wrapper_name() {
  const bool again = n_wrappers_ > 0 && draws(Feature::sharing);
  return "e" + std::to_string(again ? n_wrappers_ - 1 : n_wrappers_++);
}

std::size_t BodyGenerator::begin_wrapper(bool save_output, bool hands_over) {
  WrapperBegin wrapper;
  if (saves()) {
    wrapper.name = remat_region_name();
    wrapper.policy = WrapperBegin::Policy::save;
  } else {
    wrapper.name = wrapper_name();
    wrapper.save_output = save_output;
    wrapper.hands_over = hands_over;
  }
  return builder_->begin_wrapper(std::move(wrapper));
}

std::vector<ValueId> BodyGenerator::write_wrapper(const std::vector<ValueId>& handed,
                                                  bool save_output) {
  const bool makes_argument = handed.empty() && draws(Feature::fresh_arguments);
  const std::vector<WrapperBegin::Input> inputs =
      choose_arguments(makes_argument ? std::vector{write_argument()} : handed);
  const bool hands_over = makes_argument && tape_->choose(2) == 1;
  const std::size_t begin = begin_wrapper(save_output, hands_over);
  std::vector<ValueId> inside;
  for (const WrapperBegin::Input& input : inputs) {
    const BufferId buffer = builder_->value(input.value).buffer;
    const bool is_param = builder_->program().buffers[buffer].role == BufferRole::param;
    if (!is_param && builder_->value(input.value).requires_grad) inside.push_back(input.value);
  }
  std::reverse(inside.begin(), inside.end());  // the first argument is what makes a chain
  const ExcludedScope scope = enter_excluded(std::move(inside));
  if (makes_argument) use_argument(inputs.front().value);
  // Drawn one after the other: arguments of one call are evaluated in any order.
  const std::string_view first_op = choose_first_op();
  write_op(first_op, {pick()}, 1, false);
  const std::size_t n_arguments = region_floor_;
  for (std::size_t at = tape_->position(); tape_->more(1); at = tape_->position()) {
    write_statement(2);
    tape_->end_span(at);
  }
  std::vector<ValueId> outputs;
  const auto returns = [&](ValueId value) { outputs.push_back(builder_->since_write(value)); };
  if (pool_.size() > n_arguments + 1 && draws(Feature::many_outputs)) returns(pool_[n_arguments]);
  returns(pool_.back());
  if (draws(Feature::many_outputs)) returns(pool_.back());  // the same tensor twice
  if (draws(Feature::no_grad)) outputs.push_back(write_constant());
  leave_excluded(scope, begin, inputs, outputs);
  return outputs;
}

/// A tensor that requires no grad.
ValueId BodyGenerator::write_constant() {
  const std::size_t begin = builder_->begin_no_grad();
  const ValueId read = pick();
  const ValueId made =
      builder_->op({&op_kind_named("sin"), {read}, next_cost()}, {{layout_after(read)}})[0];
  builder_->end_no_grad(begin);
  return made;
}

/// Inside, only the arguments and parameters are there to be read.
BodyGenerator::ExcludedScope BodyGenerator::enter_excluded(std::vector<ValueId> arguments) {
  ExcludedScope scope;
  scope.outer_floor = std::exchange(region_floor_, arguments.size());
  scope.outer_buffer_floor = std::exchange(buffer_floor_, builder_->program().buffers.size());
  scope.pool = std::exchange(pool_, std::move(arguments));
  is_excluded_ = true;
  return scope;
}

void BodyGenerator::leave_excluded(const ExcludedScope& scope, std::size_t begin,
                                   const std::vector<WrapperBegin::Input>& inputs,
                                   const std::vector<ValueId>& outputs) {
  is_excluded_ = false;
  region_floor_ = scope.outer_floor;
  buffer_floor_ = scope.outer_buffer_floor;
  pool_ = scope.pool;
  refresh_pool();
  for (const WrapperBegin::Input& input : inputs)
    fixed_.insert(builder_->value(input.value).buffer.index());
  for (const ValueId output : outputs)
    fixed_.insert(builder_->value(output).buffer.index());
  builder_->end_wrapper(begin, inputs, outputs);
}

/// An excluded region with one output, which is told.
ValueId BodyGenerator::write_small_wrapper(const std::vector<ValueId>& arguments, bool save_output,
                                           const SmallBody& body) {
  WrapperBegin wrapper;
  wrapper.name = "s" + std::to_string(n_small_wrappers_++);
  wrapper.save_output = save_output || saves();
  const std::size_t begin = builder_->begin_wrapper(std::move(wrapper));
  const ExcludedScope scope = enter_excluded({arguments.front()});
  const ValueId output = body();
  std::vector<WrapperBegin::Input> inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    inputs.push_back(leaf_at(arguments[i], "arg" + std::to_string(i)));
  leave_excluded(scope, begin, inputs, {output});
  if (saves() && save_output) builder_->needs_tensor(output);
  pool_.push_back(output);
  return output;
}

/// The same of one op, which saves the argument.
ValueId BodyGenerator::write_small_wrapper(ValueId argument, bool save_output) {
  return write_small_wrapper({argument}, save_output,
                             [&] { return write_op("sin", {argument}, 1, false); });
}

/// Code that raises halfway, and a caller that does without it. What it had been given is read once
/// more, by an excluded region that was not given it.
void BodyGenerator::write_caught() {
  const ValueId given = write_op("neg", {pick()}, 1, false);
  pool_.pop_back();
  const std::size_t begin = builder_->begin_catch();
  const auto fails = [&] {
    if (draws(Feature::random)) {
      builder_->op({&op_kind_named("dropout"), {given}, next_cost()},
                   {{layout_after(given)}, {layout_after(given)}});
    }
    builder_->op({&op_kind_named("sin"), {given}, next_cost()}, {{layout_after(given)}});
    builder_->raise({.type = "builtins.ValueError"});
  };
  if (excludes()) {
    WrapperBegin wrapper;
    wrapper.name = "s" + std::to_string(n_small_wrappers_++);
    const std::size_t inner = builder_->begin_wrapper(std::move(wrapper));
    fails();
    builder_->end_wrapper(inner, {leaf_at(given, "arg0")}, std::vector<ValueId>{});
  } else if (is("kept-callables") && draws(Feature::save_units)) {
    RegionBegin callable;
    callable.name = callable_name(tape_->choose(n_callables));
    callable.kind = RegionKind::unit;
    const std::size_t inner = builder_->begin_region(std::move(callable));
    fails();
    builder_->end_region(inner, {});
  } else {
    fails();
  }
  builder_->end_catch(begin);
  const ValueId other = pick();
  if (excludes()) {
    write_small_wrapper({other}, true, [&] { return write_op("mul", {other, given}, 1, false); });
  } else {
    write_op("mul", {other, given});
  }
}

/// What a negative edit makes of an excluded region.
void BodyGenerator::write_excluded_edit() {
  const ValueId last = builder_->since_write(pool_.back());
  switch (made_->edit) {
    case Edit::excluded_twice:
      write_small_wrapper(last, true);
      write_op("tanh", {pool_.back()});
      return;
    case Edit::excluded_in_excluded:
      write_small_wrapper({last}, true, [&] { return write_small_wrapper(last, true); });
      return;
    case Edit::unkept_output_read: {
      const ValueId output = write_small_wrapper(last, false);
      pool_.pop_back();  // no later region is to ask for it
      write_op("tanh", {output});
      return;
    }
    case Edit::rederived_input_written:
    case Edit::served_output_written: {
      const ValueId argument = write_op("neg", {last}, 1, false);
      const ValueId output = write_small_wrapper(argument, true);
      // Past the write, which leaves no history; its save makes a replay come this far.
      write_op("tanh", {output}, 1, false);
      const std::size_t begin = builder_->begin_no_grad();
      builder_->in_place(
          {&op_kind_named("scale"), {has(Edit::served_output_written) ? output : argument}});
      builder_->end_no_grad(begin);
      refresh_pool();
      return;
    }
    case Edit::excluded_input_missing: {
      const std::size_t begin = builder_->begin_branch(false);
      const ValueId made = builder_->op({&op_kind_named("neg"), {last}}, {{prime_layout()}})[0];
      builder_->end_branch(begin);
      write_small_wrapper(made, true);
      return;
    }
    case Edit::excluded_input_reshaped:
      write_bound("neg", "neg", false);
      write_small_wrapper(pool_.back(), true);
      return;
    case Edit::fewer_excluded_calls: {
      const std::size_t begin = builder_->begin_branch(false);
      write_small_wrapper(last, true);
      builder_->end_branch(begin);
      pool_.pop_back();
      write_op("tanh", {last});
      return;
    }
    case Edit::output_escapes:
      write_small_wrapper({last}, true, [&] {
        const ValueId output = write_op("sin", {last}, 1, false);
        escaped_ = write_op("cos", {last}, 1, false);
        return output;
      });
      return;
    default:
      return;
  }
}

}  // namespace remat
