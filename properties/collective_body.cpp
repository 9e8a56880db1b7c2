#include <array>
#include <utility>

#include "model/collectives.hpp"
#include "properties/body_generator.hpp"

// Collectives in the body of a case (protocols.md §6, D18).

namespace remat {
namespace {

constexpr std::array<std::string_view, 4> kinds = {"all_reduce", "all_gather", "reduce_scatter",
                                                   "all_to_all"};
/// Gathered over and over, a tensor would outgrow every memory.
constexpr std::int64_t gathered_rows_max = 100'000'000;

}  // namespace

/// One that the tensor's first dimension fits; `layout` is that of what each rank gets.
const OpKind& BodyGenerator::choose_collective(ValueId given, TensorLayout& layout) {
  const TensorLayout& from = builder_->value(given).layout;
  const OpKind* kind = &op_kind_named(kinds[tape_->choose(kinds.size())]);
  ExchangedShape made = exchanged_shape(kind->exchange, from.shape, made_->scenario.n_ranks);
  const bool is_too_large = !made.shape.empty() && made.shape.front() > gathered_rows_max;
  if (!made.mismatch.empty() || is_too_large) {
    kind = &op_kind_named(kinds.front());
    made = exchanged_shape(kind->exchange, from.shape, made_->scenario.n_ranks);
  }
  layout = {
      .dtype = from.dtype, .shape = made.shape, .stride = dense_strides(made.shape), .offset = 0};
  return *kind;
}

void BodyGenerator::write_collective() {
  const ValueId given = pick();
  NewTensor made;
  const OpKind& kind = choose_collective(given, made.layout);
  const ValueId output = builder_->op(
      {.kind = &kind, .inputs = {given}, .cost = next_cost(), .kept = keeps(), .group = 0},
      {made})[0];
  if (std::get<OpStatement>(builder_->forward().statements.back()).kept)
    fixed_.insert(builder_->value(output).buffer.index());
  pool_.push_back(output);
}

/// The ranks write what they exchange into a tensor that is there, as the library below autograd
/// does.
void BodyGenerator::write_collective_into() {
  const ValueId given = pick();
  NewTensor made;
  const OpKind& kind = choose_collective(given, made.layout);
  const ValueId target =
      builder_->op({.kind = &op_kind_named("empty"), .cost = next_cost()}, {made})[0];
  const bool is_apart = tape_->choose(2) == 1;
  if (is_apart) write_plain();  // something between the two
  builder_->in_place({.kind = &kind,
                      .inputs = {target, builder_->since_write(given)},
                      .cost = next_cost(),
                      .kept = keeps(),
                      .group = 0});
  const ValueId between = builder_->since_write(pool_.back());
  pool_.push_back(builder_->since_write(target));
  if (is_apart) write_op("add", {pool_.back(), between}, 1, false);
}

}  // namespace remat
