#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// A tensor that an op is to make. Without a name the builder gives it one: v, and its number.
struct NewTensor {
  TensorLayout layout;
  std::string name = {};
};

/// One of an op's own tensors, by its place among the inputs or outputs.
struct SaveChoice {
  bool is_output = false;
  std::size_t index = 0;
};

/// An op to be added.
struct NewOp {
  const OpKind* kind = nullptr;
  std::vector<ValueId> inputs = {};
  Duration cost = {};
  bool kept = false;
  /// In a replay, where its storage is a piece of a workspace that moves on, the output begins so
  /// many elements further in it.
  std::int64_t replay_offset = 0;
  std::string attributes = {};                                  // as JSON; they tell ops apart
  std::optional<std::vector<SaveChoice>> saves = std::nullopt;  // other than the kind's
  std::optional<Duration> gradient_cost = std::nullopt;         // OpStatement has what it is
  std::optional<std::uint32_t> group = std::nullopt;            // likewise
};

/// Makes a program of one forward, statement by statement: what a reader or a generator says, with
/// the bookkeeping that every program needs (which output requires grad, what is saved, which value
/// a tensor is since it was written). Names are the caller's business.
class ProgramBuilder {
 public:
  /// The groups that collectives name.
  void set_groups(std::vector<RankGroup> groups) { program_.groups = std::move(groups); }
  /// What comes is for some ranks alone.
  void note_rank_dependence() { program_.differs_by_rank = true; }
  ValueId leaf(const std::string& name, const TensorLayout& layout, BufferRole role,
               bool requires_grad);

  /// Adds the op, and tells what it makes; the outputs of a view lie on its first input's storage.
  std::vector<ValueId> op(const NewOp& request, const std::vector<NewTensor>& outputs);
  /// An op that writes its first input. Its result, and each other tensor on that storage, is a new
  /// value from then on (`since_write`), with a history that goes through the write
  /// (observed-torch.md §8 R14); a leaf stays the leaf that it is.
  void in_place(const NewOp& request);
  /// The caller writes a tensor between two phases.
  void update(ValueId target);
  /// The value leaves the region that makes it inside a dict or a list.
  void put_in_container(ValueId value) { program_.values[value].in_container = true; }
  /// What stands for the value since the last write to its storage.
  ValueId since_write(ValueId value) const;

  /// A block up to the matching end_…; which statement it is.
  std::size_t begin_region(RegionBegin region);
  void end_region(std::size_t begin, const std::vector<ValueId>& inputs);
  /// What a branch of a replay writes or binds, forward has not: its values end with it.
  /// A region that a replay may leave out; `outputs`, where told, are the tensor leaves of what it
  /// returns.
  std::size_t begin_wrapper(WrapperBegin wrapper);
  void end_wrapper(std::size_t begin, std::vector<WrapperBegin::Input> inputs,
                   std::optional<std::vector<ValueId>> outputs);
  std::size_t begin_branch(bool in_replay);
  void end_branch(std::size_t begin);
  std::size_t begin_no_grad();
  void end_no_grad(std::size_t begin);
  /// What is raised up to `end_catch` ends there.
  std::size_t begin_catch();
  void end_catch(std::size_t begin);
  void bind(ValueId from, ValueId to);
  /// A replay of the region around will read the value.
  void needs_tensor(ValueId value);
  void mark(const std::string& name);
  std::size_t begin_compiled();
  void end_compiled(std::size_t begin);
  std::size_t begin_offload(const std::string& name, MemoryLevel level);
  void end_offload(std::size_t begin);
  void side_effect(const std::string& name);
  void raise(Raise raise);

  const Program& program() const { return program_; }
  const Forward& forward() const { return forward_; }
  const ProgramValue& value(ValueId id) const { return program_.values[id]; }
  /// Values that the statements from `begin` on read and that were made before them.
  std::vector<ValueId> read_since(std::size_t begin) const;

  /// The program; `root` is what backward starts from.
  Program finish(std::optional<ValueId> root);

 private:
  ValueId add(const std::string& name, BufferId buffer, const TensorLayout& layout,
              bool requires_grad);
  bool is_leaf(ValueId value) const;
  OpStatement started(const NewOp& request) const;
  void finish(OpStatement op, const NewOp& request);
  void rebase(OpStatement& op);
  void copy_overwritten(OpStatement& op);
  void leave_replay_branch();
  ValueId empty_leaf(const std::string& name, bool requires_grad);

  Program program_;
  Forward forward_;
  std::vector<std::uint32_t> since_write_;       // value → what stands for it now
  std::vector<std::vector<ValueId>> on_buffer_;  // buffer → values that stand for its tensors
  struct Standing {
    std::vector<std::uint32_t> since_write;
    std::vector<std::vector<ValueId>> on_buffer;
  };
  std::vector<Standing> outside_;  // of the replays' branches that are open
  std::size_t no_grad_depth_ = 0;
  std::int64_t n_raises_ = 0;
};

}  // namespace remat
