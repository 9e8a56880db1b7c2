#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// Makes a program of one forward, statement by statement: what a reader or a generator says, with
/// the bookkeeping that every program needs (which output requires grad, what is saved, which value
/// a tensor is since it was written). Names are the caller's business.
class ProgramBuilder {
 public:
  ValueId leaf(const std::string& name, const TensorLayout& layout, BufferRole role,
               bool requires_grad);

  /// An op whose outputs have these layouts; those of a view lie on its first input's storage.
  std::vector<ValueId> op(const OpKind& kind, const std::vector<ValueId>& inputs,
                          const std::vector<TensorLayout>& outputs, Duration cost, bool kept);
  /// An op that writes its first input: what stands for that tensor from then on. Other tensors on
  /// its storage become new values too (`since_write`).
  ValueId in_place(const OpKind& kind, const std::vector<ValueId>& inputs, Duration cost);
  /// The caller writes a tensor between two phases.
  ValueId update(ValueId target);
  /// What stands for the value since the last write to its storage.
  ValueId since_write(ValueId value) const;

  /// A block up to the matching end_…; which statement it is.
  std::size_t begin_region(RegionBegin region);
  void end_region(std::size_t begin, const std::vector<ValueId>& inputs);
  std::size_t begin_branch(bool in_replay);
  void end_branch(std::size_t begin);
  std::size_t begin_no_grad();
  void end_no_grad(std::size_t begin);
  void bind(ValueId from, ValueId to);
  void side_effect(const std::string& name);
  void raise(const std::string& type, Raise::Runs runs);

  const Program& program() const { return program_; }
  const Forward& forward() const { return forward_; }
  const ProgramValue& value(ValueId id) const { return program_.values[id]; }
  /// Values that the statements from `begin` on read and that were made before them.
  std::vector<ValueId> read_since(std::size_t begin) const;

  Program finish(ValueId root);

 private:
  ValueId add(const std::string& name, BufferId buffer, const TensorLayout& layout,
              bool requires_grad);
  bool wants_grad(const OpStatement& op) const;

  Program program_;
  Forward forward_;
  std::vector<std::uint32_t> since_write_;       // value → what stands for it now
  std::vector<std::vector<ValueId>> on_buffer_;  // buffer → values that stand for its tensors
  std::size_t no_grad_depth_ = 0;
};

}  // namespace remat
