#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/program.hpp"
#include "traces/rebuild/tensor_registry.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What is known beforehand of frames that no unit_begin tells of.
struct ImplicitFrames {
  std::map<std::int64_t, std::int64_t> last_packs;  // frame → seq of its last pack
  std::map<std::int64_t, std::int64_t> parents;  // frame → the one that its inputs are slots of
};

/// Makes the statements of one forward out of its events.
class ForwardBuilder {
 public:
  ForwardBuilder(const Trace& trace, Program& program, TensorRegistry& tensors,
                 const ImplicitFrames& frames, const IdSet& copies, bool shows_plain_saves)
      : trace_(&trace),
        program_(&program),
        tensors_(&tensors),
        frames_(&frames),
        copies_(&copies),
        shows_plain_saves_(shows_plain_saves) {}

  void observe(const EventView& event);
  /// A tensor is written: by the op before, or, after the forward is over, by the caller.
  void observe_write(const EventView& event);
  Forward finish();
  /// A region has been entered.
  bool has_regions() const;
  /// The region that is open last is one that recompute sessions may replay.
  bool enters_region_with_sessions() const;
  /// Why the forward cannot be a program; none where it can.
  const std::optional<std::string>& unsupported() const { return unsupported_; }

 private:
  /// A tensor saved since the last op, whose owner is not known yet.
  struct PendingPack {
    ValueId value{0};
    std::int64_t tensor = 0;
    std::int64_t seq = 0;
    std::optional<ExcludedSlot> excluded;  // in an excluded region's body
    /// Of a saved region of torch_remat: a tensor that a replay brings from the argument at this
    /// place; the recording shows no tensor then.
    std::string path = {};
    bool is_view = false;  // of the argument
    bool is_untold() const { return !path.empty(); }
  };
  struct OpenRegion {
    std::size_t begin = 0;
    std::optional<std::int64_t> frame;
    bool implicit = false;    // no unit_begin tells of it (checkpoint_sequential)
    bool is_closing = false;  // its last pack was seen
    bool reentrant = false;
  };

  /// A recompute boundary: an output of an excluded region comes in, another tensor goes out.
  struct OpenBoundary {
    ValueId input{0};
    std::optional<std::int64_t> output;  // the tensor
    ValueId value{0};                    // of the output
    bool is_packed = false;
    std::optional<ExcludedSlot> slot;
  };
  /// A call of an excluded region whose body runs.
  struct OpenWrapper {
    std::size_t begin = 0;
    std::size_t n_regions = 0;       // that are open around it
    std::vector<std::string> paths;  // of its inputs, as a pack names them
    std::vector<OpenBoundary> boundaries;
  };

  /// A region of torch_remat whose body runs.
  struct OpenRemat {
    std::size_t begin = 0;
    std::size_t n_regions = 0;      // that are open around it
    std::vector<ValueId> persists;  // outputs that it keeps at its end
  };
  /// A tensor that was detached last: who keeps a tensor keeps a detached one.
  struct Detached {
    ValueId of{0};
    std::int64_t tensor = 0;
  };

  /// The first reason is the one that is told.
  void refuse(const char* why) {
    if (!unsupported_) unsupported_ = why;
  }
  void begin_unit(const EventView& event);
  void end_unit();
  void create_frame(const EventView& event);
  void save_inputs(const EventView& event);
  void observe_op(const EventView& event);
  void observe_pack(const EventView& event);
  void observe_decision(const EventView& event);
  void release(std::int64_t storage);

  // forward_wrappers.cpp
  bool observe_excluded(const EventView& event);
  void enter_wrapper(const EventView& event);
  void exit_wrapper(const EventView& event);
  void begin_boundary(const EventView& event);
  bool pass_boundary(const EventView& op);
  bool take_boundary_pack(const EventView& pack, ValueId value);
  std::optional<ExcludedSlot> excluded_slot(const EventView& pack);
  void add_input_slots(RegionBegin& region);
  void require_placeholder();
  bool returns_unkept_argument(const WrapperBegin& wrapper) const;
  bool is_inside_reentrant() const;

  // forward_remat.cpp
  bool observe_remat(const EventView& event);
  void begin_remat_region(const EventView& event);
  void end_remat_region();
  void observe_persist(const EventView& event);
  void observe_user_pack(const EventView& event);
  bool observe_remat_pack(const EventView& event);
  bool is_saving() const;
  bool is_from_outside(ValueId value) const;
  void resolve_untold(PendingPack& pack, ValueId value);
  ValueId argument_of(ValueId saved) const;
  std::optional<ValueId> untold_argument(const PendingPack& pack) const;
  std::optional<std::size_t> untold_input(const OpStatement& op, std::size_t nth, std::size_t n,
                                          const std::vector<bool>& taken) const;

  void close_region();
  void close_implicit_regions();
  void drop_unread_copies();
  void mark_reentrant_output(std::size_t begin);
  std::vector<ValueId> read_from_outside(std::size_t begin) const;

  OpStatement make_op(const EventView& event);
  void add_outputs(const EventView& event, OpStatement& op);
  bool wants_grad(const OpStatement& op) const;
  bool shows_saves() const;
  /// Gives the pending packs to the op before, and what is left to the one that comes.
  void assign_packs(OpStatement* next);
  void give_to_last_op(std::size_t n);
  void open_function_body();
  bool saves_outputs_only(const OpStatement& op, std::size_t n) const;
  std::size_t n_of_last_op(const OpStatement* next) const;
  void give_to_next_op(std::size_t begin, OpStatement& op);
  RegionBegin& region_at(std::size_t begin) {
    return std::get<RegionBegin>(forward_.statements[begin]);
  }

  const Trace* trace_;
  Program* program_;
  TensorRegistry* tensors_;
  const ImplicitFrames* frames_;
  const IdSet* copies_;  // by seq: copies that in-place ops make of what they overwrite
  std::map<std::uint32_t, ValueId> copied_;  // copy → what it is of
  bool shows_plain_saves_;
  Forward forward_;
  std::vector<OpenRegion> open_;
  std::vector<PendingPack> pending_;
  std::vector<OpenWrapper> wrappers_;
  std::vector<OpenRemat> remat_regions_;
  std::optional<Detached> last_detached_;
  std::vector<PendingPack> input_packs_;  // of the frame that is being made
  std::optional<std::size_t> last_op_;    // its statement
  std::optional<std::int64_t> frame_being_made_;
  std::optional<std::string> unsupported_;
};

}  // namespace remat
