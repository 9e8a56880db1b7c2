#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/flat_map.hpp"
#include "model/program.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Which value of the program a recorded tensor is. A framework may wrap a tensor anew between two
/// events, so tensors join by storage and layout, not by identity alone.
class TensorRegistry {
 public:
  TensorRegistry(const Trace& trace, Program& program) : trace_(&trace), program_(&program) {}

  /// The event shows the tensor: remembers where it lies.
  void describe(const TensorView& tensor);
  void describe(std::int64_t tensor, std::int64_t storage, const Layout& layout) {
    where_[tensor] = {storage, layout};
  }
  void set_role(std::int64_t storage, BufferRole role) { roles_[storage] = role; }
  void set_bytes(std::int64_t storage, std::int64_t bytes) { bytes_[storage] = bytes; }
  /// From a `tensor` event: a leaf with a name.
  void name_leaf(std::int64_t tensor, std::string_view name, bool requires_grad);

  /// The value of a tensor that something reads; a leaf where nothing of the program made it. None
  /// where no event shows the tensor.
  std::optional<ValueId> value_of(std::int64_t tensor);
  /// Likewise, of a tensor as an event shows it.
  std::optional<ValueId> value_of(const TensorView& tensor);
  /// What an op makes: a new value, on a known buffer where the storage is known.
  ValueId make(const TensorView& tensor, bool requires_grad);
  /// A detached copy: a value of its own for those who read that tensor object, while the storage
  /// and layout go on standing for what it was made of.
  ValueId make_detached(const TensorView& tensor);
  /// The storage of `written` was written: every other tensor that looks at it becomes a new value
  /// (R14); which these are.
  std::vector<ValueId> rebase(std::int64_t storage, ValueId written, bool requires_grad);
  /// What stands for the value since the caller wrote it.
  ValueId make_written(ValueId value);
  /// The tensor is another name for the value.
  void alias(std::int64_t tensor, ValueId value) { values_[tensor] = value.index(); }
  /// All values made so far on the storage, but leaves.
  std::vector<ValueId> made_on(std::int64_t storage) const;
  /// A tensor showed a storage that the forward made in a layout that no op of it made.
  bool has_unknown_view() const { return has_unknown_view_; }
  /// Both show the same elements of the same storage.
  bool is_same_place(ValueId a, ValueId b) const;
  /// A forward begins: what it makes is its own.
  void begin_forward() { ++forward_; }
  /// Notes where a statement reads what another forward made.
  void require_this_forward(ValueId value);
  bool reads_another_forward() const { return reads_another_forward_; }
  bool is_leaf(ValueId value) const { return leaves_.contains(value.index()); }

 private:
  struct Where {
    std::int64_t storage = 0;
    Layout layout;
  };
  struct Leaf {
    std::string name;
    bool requires_grad = false;
  };
  ValueId add(std::int64_t storage, const Layout& layout, std::string name, bool requires_grad);
  ValueId current(std::uint32_t value) const;
  BufferId buffer_of(std::int64_t storage, const Layout& layout);
  /// Layouts join without device and bytes.
  static std::string key_of(std::int64_t storage, const Layout& layout);

  const Trace* trace_;
  Program* program_;
  FlatMap<std::uint32_t> values_;                      // tensor → value
  std::map<std::int64_t, Where> where_;                // tensor → where it lies
  std::map<std::string, std::uint32_t> latest_;        // storage and layout → value
  std::map<std::uint32_t, std::uint32_t> moved_;       // value → what stands for it since a write
  FlatMap<std::uint32_t> buffers_;                     // storage → buffer
  FlatMap<BufferRole> roles_;                          // by storage
  FlatMap<std::int64_t> bytes_;                        // by storage
  std::map<std::int64_t, Leaf> named_;                 // by tensor
  std::map<std::int64_t, std::vector<ValueId>> made_;  // by storage
  IdSet leaves_;
  bool has_unknown_view_ = false;
  std::size_t forward_ = 0;
  FlatMap<std::size_t> forward_of_;  // value → 1 + the forward that made it
  bool reads_another_forward_ = false;
};

}  // namespace remat
