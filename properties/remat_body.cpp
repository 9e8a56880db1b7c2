#include <algorithm>
#include <string>
#include <utility>

#include "properties/body_generator.hpp"

// Regions of torch_remat in the body of a checkpointed one (protocols.md P7).

namespace remat {

/// No two in one checkpointed region have the same.
std::string BodyGenerator::remat_region_name() {
  return "t" + std::to_string(n_remat_regions_++);
}

/// A chain of saved regions: what one hands to the next nobody keeps; what comes out at its end is
/// kept for whoever reads it, or read by nobody.
void BodyGenerator::write_saved() {
  const std::uint64_t n = draws(Feature::chains) ? 2 + tape_->choose(3) : 1;
  std::vector<ValueId> handed;
  for (std::uint64_t i = 0; i < n; ++i)
    handed = write_wrapper(handed, true);
  const ValueId last = handed.back();
  for (const ValueId output : handed) {
    if (output != last && draws(Feature::unused)) continue;
    hand_out(output);
  }
}

/// The output of a saved region is read: after a word that a replay needs it, of it or of a view of
/// it, or by a region that is recomputed.
void BodyGenerator::hand_out(ValueId output) {
  const bool requires_grad = builder_->value(output).requires_grad;
  const std::uint64_t form = tape_->choose(3);
  if (form == 2 && requires_grad) {
    WrapperBegin region;
    region.name = remat_region_name();
    region.policy = WrapperBegin::Policy::recompute;
    const std::size_t begin = builder_->begin_wrapper(std::move(region));
    write_op("tanh", {output}, 1, false);
    builder_->end_wrapper(begin, {{output, "arg0"}}, std::nullopt);
    return;
  }
  ValueId asked = output;
  if (form == 1 && has(Feature::views)) {
    const TensorLayout& layout = builder_->value(output).layout;
    asked = builder_->op({&op_kind_named("view"), {output}}, {{layout}})[0];
  }
  builder_->needs_tensor(asked);
  if (!requires_grad) {
    write_op("mul", {pick(), output});
  } else if (std::find(pool_.begin(), pool_.end(), output) == pool_.end()) {
    pool_.push_back(asked);
  }
}

/// Code like any other, which says that a replay runs it.
void BodyGenerator::write_recomputed(std::size_t depth) {
  WrapperBegin region;
  region.name = remat_region_name();
  region.policy = WrapperBegin::Policy::recompute;
  const ValueId read = pick();
  const std::size_t begin = builder_->begin_wrapper(std::move(region));
  write_op("sin", {read}, 1, false);
  for (std::size_t at = tape_->position(); tape_->more(1); at = tape_->position()) {
    write_statement(depth + 1);
    tape_->end_span(at);
  }
  builder_->end_wrapper(begin, {{read, "arg0"}}, std::nullopt);
}

void BodyGenerator::write_remat_edit() {
  const ValueId last = builder_->since_write(pool_.back());
  const auto region = [&](std::string name, WrapperBegin::Policy policy) {
    WrapperBegin made;
    made.name = std::move(name);
    made.policy = policy;
    return builder_->begin_wrapper(std::move(made));
  };
  switch (made_->edit) {
    case Edit::same_name_twice:
      for (int i = 0; i < 2; ++i) {
        const std::size_t begin = region("twice", WrapperBegin::Policy::recompute);
        write_op("sin", {builder_->since_write(pool_.back())}, 1, false);
        builder_->end_wrapper(begin, {{last, "arg0"}}, std::nullopt);
      }
      return;
    case Edit::recomputed_in_saved:
      write_small_wrapper({last}, true, [&] {
        const std::size_t begin = region("inner", WrapperBegin::Policy::recompute);
        const ValueId made = write_op("sin", {last}, 1, false);
        builder_->end_wrapper(begin, {{last, "arg0"}}, std::nullopt);
        return made;
      });
      return;
    case Edit::checkpoint_in_checkpoint:
      return write_region("inner", false, 2);
    case Edit::no_record: {
      const std::size_t begin = builder_->begin_branch(true);
      const std::size_t inner = region("only_in_replay", WrapperBegin::Policy::save);
      builder_->op({&op_kind_named("neg"), {last}}, {{prime_layout()}});
      builder_->end_wrapper(inner, {{last, "arg0"}}, std::vector<ValueId>{});
      builder_->end_branch(begin);
      return;
    }
    default:
      return;
  }
}

}  // namespace remat
