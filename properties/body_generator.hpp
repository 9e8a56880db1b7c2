#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/flat_map.hpp"
#include "model/program_builder.hpp"
#include "properties/choice_tape.hpp"
#include "properties/program_generator.hpp"

namespace remat {

/// Writes the statements of a case: regions and what stands between them.
class BodyGenerator {
 public:
  BodyGenerator(ChoiceTape& tape, std::uint32_t features, const std::string& protocol,
                ProgramBuilder& builder)
      : tape_(&tape), features_(features), protocol_(protocol), builder_(&builder) {}

  /// Leaves, regions and the root; `edit` is what one of the regions is to have.
  ValueId write(const NegativeEdit& edit);

  /// Parameters and arguments that a later edit may write.
  const std::vector<ValueId>& params() const { return params_; }
  std::optional<ValueId> region_argument() const { return region_argument_; }
  std::optional<ValueId> hidden_argument() const { return hidden_argument_; }
  std::optional<ValueId> read_param() const { return read_param_; }

 private:
  bool has(Feature feature) const {
    return ((features_ >> static_cast<std::uint32_t>(feature)) & 1U) != 0;
  }
  bool draws(Feature feature) { return has(feature) && tape_->choose(2) == 1; }
  TensorLayout next_layout();
  Duration next_cost() { return {static_cast<std::int64_t>(tape_->choose(4)) * 7}; }
  ValueId pick(const std::vector<ValueId>& pool);
  ValueId pick_or_param(const std::vector<ValueId>& pool);
  bool keeps() { return protocol_ == "torch-sac" && tape_->choose(2) == 1; }

  void write_region(const NegativeEdit& edit, bool takes_edit, std::size_t depth);
  void write_statement(std::size_t depth);
  void write_edit(const NegativeEdit& edit);
  ValueId write_op(std::string_view name, const std::vector<ValueId>& inputs);
  void write_view();
  void write_in_place();
  void write_no_grad();
  void finish_region(std::size_t begin, bool may_hide);

  ChoiceTape* tape_;
  std::uint32_t features_;
  std::string protocol_;
  ProgramBuilder* builder_;
  std::vector<ValueId> pool_;  // differentiable values that statements may read, newest last
  std::vector<ValueId> params_;
  std::vector<ValueId> ends_;     // what the root is made of
  IdSet fixed_;                   // buffers that something relies on: not to be written
  std::size_t region_floor_ = 0;  // values from here on were made in the innermost region
  std::size_t buffer_floor_ = 0;  // and buffers from here on
  bool keeps_next_ = false;       // a selective policy keeps the next op, whatever is drawn
  std::size_t n_primes_ = 0;
  std::size_t n_regions_ = 0;
  std::optional<ValueId> region_argument_;
  std::optional<ValueId> hidden_argument_;
  std::optional<ValueId> read_param_;
};

}  // namespace remat
