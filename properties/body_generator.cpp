#include "properties/body_generator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/errors.hpp"
#include "properties/unit_generator.hpp"

namespace remat {
namespace {

// Distinct primes as byte sizes: a sum of bytes tells which storages it is made of.
constexpr std::array<std::int64_t, 60> primes = {
    11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,   53,   59,    61,     67,
    71,  73,  79,  83,  89,  97,  101, 103, 107, 109, 113,  127,  131,   137,    139,
    149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197,  199,  211,   223,    227,
    229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 1009, 4099, 65537, 262147, 1048583};

/// One byte an element, so that a prime shape has a prime size.
constexpr std::string_view byte_dtype = "f8";
constexpr std::string_view index_dtype = "u8";

/// How many tensors a kind takes and makes.
struct Arity {
  std::string_view kind;
  std::uint8_t inputs;
  std::uint8_t outputs;
};
constexpr std::array plain_ops = {
    Arity{"sin", 1, 1},       Arity{"tanh", 1, 1},    Arity{"mul", 2, 1},     Arity{"add", 2, 1},
    Arity{"gelu", 1, 1},      Arity{"softmax", 1, 1}, Arity{"addmm", 3, 1},   Arity{"mm", 2, 1},
    Arity{"rmsnorm", 2, 1},   Arity{"scale", 1, 1},   Arity{"sigmoid", 1, 1}, Arity{"clone", 1, 1},
    Arity{"cat", 2, 1},       Arity{"cos", 1, 1},     Arity{"relu", 1, 1},    Arity{"silu", 1, 1},
    Arity{"embedding", 2, 1}, Arity{"where", 3, 1},   Arity{"exp", 1, 1},     Arity{"neg", 1, 1}};
constexpr std::array wide_ops = {Arity{"native_layer_norm", 3, 3}, Arity{"attention", 3, 2},
                                 Arity{"topk", 1, 2}};
constexpr std::array<std::string_view, 4> first_ops = {"sin", "tanh", "gelu", "relu"};

/// What a statement can be, beside an op.
enum class Form : std::uint8_t {
  plain,
  view,
  in_place,
  random,
  no_grad,
  effect,
  forward_only,
  nested,
  excluded,
  caught,
  saved,
  recomputed,
  written_apart,
  callable,
  mark,
  compiled,
  collective,
  collective_into
};

}  // namespace

const OpKind& op_kind_named(std::string_view name) {
  const OpKind* kind = find_op_kind(name);
  REMAT_INVARIANT(kind != nullptr);
  return *kind;
}

TensorLayout BodyGenerator::prime_layout() {
  return {.dtype = std::string(byte_dtype),
          .shape = {primes[n_primes_++ % primes.size()]},
          .stride = {1},
          .offset = 0};
}

TensorLayout BodyGenerator::layout_after(ValueId first_input) {
  if (!has(Feature::same_shapes)) return prime_layout();
  TensorLayout layout = builder_->value(first_input).layout;
  layout.stride = dense_strides(layout.shape);
  layout.offset = 0;
  return layout;
}

Duration BodyGenerator::next_cost() {
  // Small, and seldom equal to that of the op before.
  return {static_cast<std::int64_t>(cost_unit_ * (1 + n_ops_++ % 5))};
}

ValueId BodyGenerator::pick() {
  // The newest is the simplest choice: it makes a chain.
  const std::size_t back =
      has(Feature::fan_out) && pool_.size() > 1 ? tape_->choose(pool_.size()) : 0;
  return builder_->since_write(pool_[pool_.size() - 1 - back]);
}

ValueId BodyGenerator::pick_or_param() {
  const std::uint64_t param = params_.empty() ? 0 : tape_->choose(params_.size() + 1);
  if (param == 0) return pick();
  return params_[param - 1];
}

ValueId BodyGenerator::write_op(std::string_view name, const std::vector<ValueId>& inputs,
                                std::size_t n_outputs, std::optional<bool> kept) {
  const OpKind& kind = op_kind_named(name);
  std::vector<NewTensor> tensors;
  for (std::size_t j = 0; j < n_outputs; ++j)
    tensors.push_back({layout_after(inputs.front())});
  const std::vector<ValueId> outputs =
      builder_->op({&kind, inputs, next_cost(), kept ? *kept : keeps()}, tensors);
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

void BodyGenerator::refresh_pool() {
  for (ValueId& value : pool_)
    value = builder_->since_write(value);
}

void BodyGenerator::write_no_grad() {
  const ValueId made = write_constant();
  write_op("mul", {pick(), made});
}

/// An op that a replay leaves out, and that nobody would miss: it saves nothing, nothing reads it.
/// No other op has its name, so that the calls of others count alike in both runs.
void BodyGenerator::write_forward_only() {
  const ValueId read = pick();
  const std::size_t branch = builder_->begin_branch(false);
  const std::size_t begin = builder_->begin_no_grad();
  builder_->op({&op_kind_named("cumsum"), {read}, next_cost(), keeps()}, {{layout_after(read)}});
  builder_->end_no_grad(begin);
  builder_->end_branch(branch);
}

void BodyGenerator::write_plain() {
  const bool is_wide = draws(Feature::many_outputs);
  const Arity& op = is_wide ? wide_ops[tape_->choose(wide_ops.size())]
                            : plain_ops[tape_->choose(plain_ops.size())];
  std::vector<ValueId> inputs = {pick()};
  while (inputs.size() < op.inputs)
    inputs.push_back(pick_or_param());
  const ValueId made = write_op(op.kind, inputs, op.outputs);
  if (pool_.size() > region_floor_ + 1 && pool_.back() == made && draws(Feature::unused))
    pool_.pop_back();  // nobody reads it
}

void BodyGenerator::write_statement(std::size_t depth) {
  std::vector<Form> forms = {Form::plain, Form::plain, Form::plain};
  const auto allow = [&](Form form, Feature feature, bool fits = true) {
    if (has(feature) && fits) forms.push_back(form);
  };
  allow(Form::view, Feature::views);
  // What a unit may keep is not to be written, nor is anything between markers.
  allow(Form::in_place, Feature::in_place, !has_units());
  allow(Form::written_apart, Feature::in_place, is("kept-ops"));
  allow(Form::random, Feature::random);
  allow(Form::no_grad, Feature::no_grad);
  // How often an effect is to run is known where each backward is one graph task.
  allow(Form::effect, Feature::side_effects, !made_->is_split && has(Edit::none));
  allow(Form::forward_only, Feature::forward_only, region_floor_ > 0);
  allow(Form::nested, Feature::nesting, depth < 2 && region_floor_ > 0 && !saves());
  const bool may_exclude = excludes() && region_floor_ > 0 && !is_excluded_;
  allow(Form::caught, Feature::caught_errors, region_floor_ > 0 && !is_excluded_);
  allow(Form::excluded, Feature::excluded, may_exclude);
  const bool may_save = saves() && region_floor_ > 0 && !is_excluded_;
  allow(Form::saved, Feature::excluded, may_save);
  allow(Form::saved, Feature::excluded, may_save);
  allow(Form::recomputed, Feature::excluded, may_save && depth < 2);
  const bool in_region = has_units() && region_floor_ > 0;
  allow(Form::callable, Feature::save_units, in_region && is("kept-callables") && depth < 3);
  allow(Form::mark, Feature::save_units, in_region && is("markers"));
  allow(Form::mark, Feature::save_units, in_region && is("markers"));
  allow(Form::compiled, Feature::compiled, in_region && depth < 3);
  allow(Form::collective, Feature::ranks, made_->has_ranks());
  // What a unit may keep is not to be written.
  const bool may_write = !has_units() || is("kept-ops");
  allow(Form::collective_into, Feature::ranks, made_->has_ranks() && may_write);
  switch (forms[tape_->choose(forms.size())]) {
    case Form::plain:
      return write_plain();
    case Form::view:
      return write_view();
    case Form::in_place:
      return write_in_place();
    case Form::random:
      write_op("dropout", {pick()}, 2);
      return;
    case Form::no_grad:
      return write_no_grad();
    case Form::effect:
      return builder_->side_effect("effect" + std::to_string(tape_->choose(2)));
    case Form::forward_only:
      return write_forward_only();
    case Form::caught:
      return write_caught();
    case Form::excluded:
      return write_excluded();
    case Form::saved:
      return write_saved();
    case Form::recomputed:
      return write_recomputed(depth);
    case Form::written_apart:
      return write_apart();
    case Form::callable:
      return write_callable(depth);
    case Form::mark:
      return write_mark();
    case Form::compiled:
      return write_compiled(depth);
    case Form::collective:
      return write_collective();
    case Form::collective_into:
      return write_collective_into();
    case Form::nested:
      return write_region("r" + std::to_string(n_regions_++), false, depth + 1);
  }
}

/// Ends the region, with its arguments and what leaves it.
void BodyGenerator::close_region(const RegionScope& scope, bool takes_edit) {
  std::vector<ValueId> inputs = builder_->read_since(scope.begin + 1);
  for (const ValueId input : inputs)
    fixed_.insert(builder_->value(input).buffer.index());
  const bool is_reentrant = is("torch-reentrant");
  const bool must_hide =
      takes_edit && (has(Edit::hidden_argument_written) || has(Edit::captured_by_reentrant));
  const bool must_show = takes_edit && has(Edit::argument_written);
  if (must_hide || (!is_reentrant && !must_show && draws(Feature::containers))) {
    if (takes_edit) hidden_argument_ = inputs.back();
    inputs.pop_back();
  }
  if (takes_edit && !inputs.empty()) region_argument_ = inputs.front();
  builder_->end_region(scope.begin, inputs);
  const ValueId last = builder_->since_write(pool_.back());
  if (is_reentrant && draws(Feature::containers)) builder_->put_in_container(last);
  region_floor_ = scope.outer_floor;
  buffer_floor_ = scope.outer_buffer_floor;
  // Values made inside leave it through its last one, and sometimes through up to three more.
  std::vector<ValueId> made(pool_.begin() + static_cast<std::ptrdiff_t>(scope.pool), pool_.end());
  pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(scope.pool), pool_.end());
  for (std::size_t i = 0; i < std::min<std::size_t>(made.size() - 1, 3); ++i) {
    const ValueId another = builder_->since_write(made[i]);
    if (another != last && draws(Feature::many_outputs)) pool_.push_back(another);
  }
  pool_.push_back(last);
}

std::string_view BodyGenerator::choose_first_op() {
  return first_ops[tape_->choose(first_ops.size())];
}

void BodyGenerator::write_region_body(bool takes_edit, std::size_t depth) {
  // Its first op reads what requires grad, so that the region has a graph.
  const bool must_keep = takes_edit && has(Edit::selective_twice);
  // Only what saves its output must run, or be served, before the region's only save.
  const std::string_view kind = must_keep ? "tanh" : choose_first_op();
  ValueId first = write_op(kind, {pick()}, 1, must_keep ? std::optional(true) : std::nullopt);
  if (takes_edit) {
    write_edit();
    first = pool_.back();
  }
  for (std::size_t begin = tape_->position(); tape_->more(1); begin = tape_->position()) {
    write_statement(depth);
    tape_->end_span(begin);
  }
  // With fan-out the last value need not come from the first: nothing is to hang in the air.
  first = builder_->since_write(first);
  if (has(Feature::fan_out) && builder_->since_write(pool_.back()) != first)
    write_op("add", {builder_->since_write(pool_.back()), first}, 1, false);
  if (takes_edit) write_last_edit();
}

void BodyGenerator::write_region(const std::string& name, bool takes_edit, std::size_t depth) {
  const std::size_t begin = tape_->position();
  RegionBegin region;
  region.name = name;
  region.reentrant = is("torch-reentrant");
  region.early_stop = !draws(Feature::whole_replays);
  if (has_units() && draws(Feature::two_models)) region.owner = second_model;
  const bool runs_whole = has(Edit::more_saves) || has(Edit::stale_slot) ||
                          has(Edit::op_without_entry) || has(Edit::rederived_input_written) ||
                          has(Edit::fewer_excluded_calls);
  if (takes_edit && runs_whole) region.early_stop = false;
  const RegionScope scope = {
      .begin = builder_->begin_region(region),
      .pool = pool_.size(),
      .outer_floor = std::exchange(region_floor_, pool_.size()),
      .outer_buffer_floor = std::exchange(buffer_floor_, builder_->program().buffers.size())};
  write_region_body(takes_edit, depth);
  close_region(scope, takes_edit);
  tape_->end_span(begin);
}

/// One region called two or three times, each time on what the last call made: it reads nothing but
/// its argument and parameters, and its choices are made again, not drawn.
void BodyGenerator::write_again(const std::string& name) {
  std::vector<ValueId> outside = std::exchange(pool_, {builder_->since_write(pool_.back())});
  const std::size_t begin = tape_->position();
  const std::size_t n_primes = n_primes_;
  const std::size_t n_ops = n_ops_;
  const std::size_t n_regions = n_regions_;
  write_region(name, false, 0);
  const std::vector<std::uint64_t>& chosen = tape_->chosen();
  const std::vector<std::uint64_t> same(chosen.begin() + static_cast<std::ptrdiff_t>(begin),
                                        chosen.end());
  for (std::uint64_t n_more = 1 + tape_->choose(2); n_more > 0; --n_more) {
    ChoiceTape again(same);
    ChoiceTape* drawn = std::exchange(tape_, &again);
    pool_ = {pool_.back()};
    n_primes_ = n_primes;
    n_ops_ = n_ops;
    n_regions_ = n_regions;
    write_region(name, false, 0);
    tape_ = drawn;
  }
  outside.push_back(pool_.back());
  pool_ = std::move(outside);
  refresh_pool();
}

void BodyGenerator::write_next_region(bool takes_edit) {
  const std::string name = "r" + std::to_string(n_regions_++);
  if (has(Feature::sharing) && !takes_edit && tape_->choose(3) == 2) {
    write_again(name);
  } else {
    write_region(name, takes_edit, 0);
  }
  ends_.push_back(pool_.back());
}

/// A weight, and sometimes a frozen one, a scalar or an index.
ValueId BodyGenerator::write_param(const std::string& name) {
  TensorLayout layout = prime_layout();
  if (draws(Feature::odd_params)) {
    if (tape_->choose(2) == 0) {
      layout.shape.clear();
      layout.stride.clear();
    } else {
      layout.dtype = index_dtype;
    }
  }
  const bool has_gradient = layout.dtype != index_dtype && !draws(Feature::frozen);
  return builder_->leaf(name, layout, BufferRole::param, has_gradient);
}

void BodyGenerator::write_leaves() {
  n_primes_ = tape_->choose(primes.size());
  cost_unit_ = tape_->choose(1000);
  pool_ = {builder_->leaf("x", prime_layout(), BufferRole::input, true)};
  const bool needs_param = has(Edit::parameter_written);
  const std::uint64_t n_params = (needs_param ? 1 : 0) + tape_->choose(3);
  for (std::uint64_t i = 0; i < n_params; ++i)
    params_.push_back(write_param("w" + std::to_string(i)));
}

/// What goes to the host is not the last layer's: more of them where all is about that.
bool BodyGenerator::has_another_layer() {
  return is("offload") ? tape_->choose(3) != 0 : tape_->choose(4) == 3;
}

/// A layer is an offload group, where there are any. Nothing is drawn: a tape means the same
/// program with them and without.
void BodyGenerator::write_layer(const std::function<void()>& write_body) {
  if (!made_->offloads()) return write_body();
  const std::size_t begin =
      builder_->begin_offload("g" + std::to_string(n_offload_groups_++), MemoryLevel::host);
  write_body();
  builder_->end_offload(begin);
}

ValueId BodyGenerator::write() {
  write_leaves();
  fixed_.insert(builder_->value(pool_[0]).buffer.index());  // the input is the caller's
  write_layer([&] { write_next_region(!has(Edit::none)); });
  for (std::size_t begin = tape_->position(); has_another_layer(); begin = tape_->position()) {
    write_layer([&] {
      if (tape_->choose(4) == 3) write_statement(2);
      write_next_region(false);
    });
    tape_->end_span(begin);
  }
  if (escaped_) return *escaped_;  // the loss of what the body let out, alone
  std::vector<ValueId> read = {builder_->since_write(pool_.back())};
  for (const ValueId end : ends_) {
    const ValueId now = builder_->since_write(end);
    if (now != read.front()) read.push_back(now);
  }
  if (read.size() == 1 && !made_->is_split && tape_->choose(2) == 0) return read.front();
  return builder_->op({&op_kind_named("sum"), read, next_cost()}, {{prime_layout()}})[0];
}

}  // namespace remat
