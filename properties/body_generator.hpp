#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/flat_map.hpp"
#include "model/program_builder.hpp"
#include "properties/choice_tape.hpp"
#include "properties/program_generator.hpp"
#include "schedules/registry.hpp"

namespace remat {

/// Writes the statements of a case: regions and what stands between them.
class BodyGenerator {
 public:
  BodyGenerator(ChoiceTape& tape, const GeneratedCase& made, ProgramBuilder& builder)
      : tape_(&tape), made_(&made), builder_(&builder) {}

  /// Leaves, regions and the root.
  ValueId write();

  // What the caller may write once the forward is over.
  const std::optional<ValueId>& region_argument() const { return region_argument_; }
  const std::optional<ValueId>& hidden_argument() const { return hidden_argument_; }
  const std::optional<ValueId>& read_param() const { return read_param_; }

 private:
  /// A region that is being written: what was there before it.
  struct RegionScope {
    std::size_t begin = 0;  // its statement
    std::size_t pool = 0;
    std::size_t outer_floor = 0;
    std::size_t outer_buffer_floor = 0;
  };

  bool has(Feature feature) const { return made_->has(feature); }
  bool has(Edit edit) const { return made_->edit == edit; }
  bool draws(Feature feature) { return has(feature) && tape_->choose(2) == 1; }
  bool is(std::string_view protocol) const { return made_->scenario.protocol == protocol; }
  TensorLayout prime_layout();
  TensorLayout layout_after(ValueId first_input);
  Duration next_cost();
  ValueId pick();
  ValueId pick_or_param();
  bool keeps() { return is("torch-sac") && tape_->choose(2) == 1; }

  ValueId write_param(const std::string& name);
  void write_leaves();
  void write_region(const std::string& name, bool takes_edit, std::size_t depth);
  void write_next_region(bool takes_edit);
  void write_region_body(bool takes_edit, std::size_t depth);
  void write_again(const std::string& name);
  void close_region(const RegionScope& scope, bool takes_edit);
  void write_statement(std::size_t depth);
  void write_plain();
  ValueId write_op(std::string_view name, const std::vector<ValueId>& inputs,
                   std::size_t n_outputs = 1, std::optional<bool> kept = std::nullopt);
  std::int64_t first_row(std::int64_t n_rows);
  void write_view();
  void write_bits(ValueId base);
  void write_in_place();
  void write_no_grad();
  void write_caught();
  void write_forward_only();
  void refresh_pool();
  bool has_another_layer();
  void write_layer(const std::function<void()>& write_body);

  // excluded_body.cpp
  /// What was there before an excluded region's body.
  struct ExcludedScope {
    std::vector<ValueId> pool;
    std::size_t outer_floor = 0;
    std::size_t outer_buffer_floor = 0;
  };
  void write_excluded();
  std::size_t begin_wrapper(bool save_output, bool hands_over);
  std::vector<ValueId> write_wrapper(const std::vector<ValueId>& handed, bool save_output);
  std::vector<WrapperBegin::Input> choose_arguments(const std::vector<ValueId>& handed);
  ValueId write_argument();
  void use_argument(ValueId argument);
  ValueId write_constant();
  std::string wrapper_name();
  ExcludedScope enter_excluded(std::vector<ValueId> arguments);
  void leave_excluded(const ExcludedScope& scope, std::size_t begin,
                      const std::vector<WrapperBegin::Input>& inputs,
                      const std::vector<ValueId>& outputs);
  /// What the body makes of the argument; what it returns.
  using SmallBody = std::function<ValueId()>;
  ValueId write_small_wrapper(const std::vector<ValueId>& arguments, bool save_output,
                              const SmallBody& body);
  ValueId write_small_wrapper(ValueId argument, bool save_output);
  void write_excluded_edit();

  // remat_body.cpp
  void write_saved();
  void write_recomputed(std::size_t depth);
  void hand_out(ValueId output);
  void write_remat_edit();
  std::string remat_region_name();

  // collective_body.cpp
  const OpKind& choose_collective(ValueId given, TensorLayout& layout);
  void write_collective();
  void write_collective_into();

  // unit_body.cpp
  void write_callable(std::size_t depth);
  void write_mark();
  void write_apart();
  void write_compiled(std::size_t depth);
  void write_some(std::size_t depth);
  void write_between_markers();

  // edited_body.cpp
  void write_edit();
  void write_past_autograd(ValueId last);
  void write_last_edit();
  std::string_view choose_first_op();
  bool has_units() const { return unit_kinds(made_->scenario.protocol).any(); }
  bool saves() const { return is("remat"); }
  bool excludes() const { return is("exclude") || is("exclude-rederive"); }
  void write_bound(std::string_view in_forward, std::string_view in_replay, bool same_layout);

  ChoiceTape* tape_;
  const GeneratedCase* made_;
  ProgramBuilder* builder_;
  std::vector<ValueId> pool_;  // differentiable values that statements may read, newest last
  std::vector<ValueId> params_;
  std::vector<ValueId> ends_;     // what the root is made of
  IdSet fixed_;                   // buffers that something relies on: not to be written
  std::size_t region_floor_ = 0;  // values from here on were made in the innermost region
  std::size_t buffer_floor_ = 0;  // and buffers from here on
  std::size_t n_primes_ = 0;
  std::uint64_t cost_unit_ = 0;
  std::size_t n_regions_ = 0;
  std::size_t n_offload_groups_ = 0;
  std::size_t n_ops_ = 0;
  std::size_t n_wrappers_ = 0;
  std::size_t n_small_wrappers_ = 0;  // of edits: called once
  std::size_t n_remat_regions_ = 0;
  bool is_excluded_ = false;  // an excluded region's body is being written
  std::optional<ValueId> escaped_;
  std::optional<ValueId> region_argument_;
  std::optional<ValueId> hidden_argument_;
  std::optional<ValueId> read_param_;
};

const OpKind& op_kind_named(std::string_view name);

}  // namespace remat
