#include "properties/body_generator.hpp"

// What a negative edit puts in the body of a region.

namespace remat {

/// Forward makes a tensor with one op, a replay the tensor of that name with another.
void BodyGenerator::write_bound(std::string_view in_forward, std::string_view in_replay,
                                bool same_layout) {
  const ValueId last = builder_->since_write(pool_.back());
  const std::size_t forward = builder_->begin_branch(false);
  const TensorLayout layout = prime_layout();
  const ValueId made = builder_->op({&op_kind_named(in_forward), {last}}, {{layout}})[0];
  builder_->end_branch(forward);
  const std::size_t replay = builder_->begin_branch(true);
  const ValueId other = builder_->op({&op_kind_named(in_replay), {last}},
                                     {{same_layout ? layout : prime_layout()}})[0];
  builder_->bind(other, made);
  builder_->end_branch(replay);
  pool_.push_back(made);
  fixed_.insert(builder_->value(made).buffer.index());
}

/// A save is written to, unseen by autograd.
void BodyGenerator::write_past_autograd(ValueId last) {
  const bool is_kept = has(Edit::kept_output_written);
  const ValueId saved = write_op("tanh", {last}, 1, is_kept);
  write_op("mul", {saved, saved}, 1, false);
  // Past autograd's own check, which would raise in plain code.
  const std::size_t begin = builder_->begin_no_grad();
  builder_->in_place({&op_kind_named("scale"), {saved}});
  builder_->end_no_grad(begin);
  refresh_pool();
}

void BodyGenerator::write_edit() {
  const ValueId last = builder_->since_write(pool_.back());
  switch (made_->edit) {
    case Edit::raise_in_forward:
    case Edit::raise_in_replay:
      builder_->raise(
          {.type = "builtins.ValueError",
           .runs = has(Edit::raise_in_replay) ? Raise::Runs::replay : Raise::Runs::forward});
      write_op("tanh", {last});
      return;
    case Edit::parameter_written:
      read_param_ = params_.front();
      if ((excludes() || saves()) && tape_->choose(2) == 1) {
        write_small_wrapper({last, *read_param_}, true, [&] {
          return write_op("mul", {last, *read_param_}, 1, false);
        });
      } else {
        write_op("mul", {last, *read_param_});
      }
      return;
    case Edit::fewer_saves:
    case Edit::more_saves:
    case Edit::op_without_entry: {
      const std::size_t begin = builder_->begin_branch(!has(Edit::fewer_saves));
      builder_->op({&op_kind_named("abs"), {last}}, {{prime_layout()}});  // no other op is one
      builder_->end_branch(begin);
      write_op("tanh", {last});
      return;
    }
    case Edit::other_path:
      write_bound("sin", "cos", true);
      write_op("tanh", {pool_.back()});
      return;
    case Edit::other_layout:
      write_bound("neg", "neg", false);
      write_op("sin", {pool_.back()});
      return;
    case Edit::stale_slot:
    case Edit::kept_output_written:
      return write_past_autograd(last);
    case Edit::excluded_twice:
    case Edit::excluded_in_excluded:
    case Edit::unkept_output_read:
    case Edit::rederived_input_written:
    case Edit::served_output_written:
    case Edit::excluded_input_missing:
    case Edit::excluded_input_reshaped:
    case Edit::fewer_excluded_calls:
    case Edit::output_escapes:
      return write_excluded_edit();
    case Edit::same_name_twice:
    case Edit::recomputed_in_saved:
    case Edit::checkpoint_in_checkpoint:
    case Edit::no_record:
      return write_remat_edit();
    case Edit::written_between_markers:
      return write_between_markers();
    case Edit::none:
    case Edit::backward_twice:
    case Edit::argument_written:
    case Edit::hidden_argument_written:
    case Edit::fewer_saves_unchecked:
    case Edit::selective_twice:
    case Edit::group_twice:
    case Edit::captured_by_reentrant:
    case Edit::partial_through_reentrant:
      return;
  }
}

/// What stands at the region's end: its last save has no counterpart in a replay.
void BodyGenerator::write_last_edit() {
  if (has(Edit::fewer_saves_unchecked)) write_bound("tanh", "scale", true);
}

}  // namespace remat
