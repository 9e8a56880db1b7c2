#include <algorithm>
#include <utility>

#include "sim/rank.hpp"
#include "sim/wrapper_call.hpp"

// What an excluded region's body saves: kept, or let go of for a replay to bring (protocols.md P4).

namespace remat {
namespace {

/// Elements lie without gaps and none twice, whatever the order of the dimensions.
bool is_dense(const TensorLayout& layout) {
  return spanned_elements(layout) == element_count(layout.shape) &&
         std::all_of(layout.stride.begin(), layout.stride.end(),
                     [](std::int64_t stride) { return stride >= 0; }) &&
         element_count(layout.shape) > 0;
}

/// The view shows nothing past the ends of its base.
bool is_contained(const TensorLayout& view, const TensorLayout& base) {
  const std::int64_t n = spanned_elements(view);
  return n > 0 && view.offset >= base.offset &&
         view.offset + n <= base.offset + spanned_elements(base);
}

/// Likewise, and it steps through it as a tensor does.
bool lies_within(const TensorLayout& view, const TensorLayout& base) {
  const auto steps = [&](std::size_t d) { return view.shape[d] == 1 || view.stride[d] > 0; };
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (!steps(d)) return false;
  return is_contained(view, base);
}

bool is_same(const TensorLayout& a, const TensorLayout& b) {
  return a.shape == b.shape && a.stride == b.stride && a.offset == b.offset;
}

}  // namespace

InputMatch Rank::match(const WrapperCall& call, std::size_t input, const Tensor& tensor) const {
  const WrapperCall::Input& from = call.inputs[input];
  const TensorLayout& layout = value_of(tensor.value).layout;
  const TensorLayout& base = value_of(from.value).layout;
  const std::uint32_t storage = tensor.hold.storage();
  const bool is_within = lies_within(layout, base);
  return {.is_parameter = from.is_parameter,
          .is_save_output = from.is_save_output,
          .same_object = tensor.id == from.object,
          .same_storage = has(RankFault::matched_by_address)
                              ? storage == from.address
                              : ledger_.number(storage) == from.storage,
          .same_dtype = layout.dtype == base.dtype,
          .same_version = ledger_.version(storage) == from.version,
          .same_layout = is_same(layout, base),
          .is_contained = is_contained(layout, base),
          .is_within = is_within,
          .is_safe_view = is_within && is_dense(base),
          .has_boundary = call.can_have_boundary};
}

/// The argument that a replay can bring the tensor from: the same one if it can be, else the
/// smallest that holds it.
std::optional<std::size_t> Rank::rederived_from(const Walk& walk, const Tensor& tensor) const {
  const WrapperCall& call = *walk.wrapper;
  std::optional<std::size_t> best;
  const auto rank_of = [&](std::size_t input) {
    const InputMatch found = match(call, input, tensor);
    const std::int64_t size = found.same_object ? -2
                              : found.same_layout
                                  ? -1
                                  : spanned_elements(value_of(call.inputs[input].value).layout);
    return size;
  };
  for (std::size_t input = 0; input < call.inputs.size(); ++input) {
    if (call.inputs[input].is_duplicate || !protocol_->rederives(match(call, input, tensor)))
      continue;
    if (!best || rank_of(input) < rank_of(*best)) best = input;
  }
  return best && has(RankFault::paths_by_equality) ? first_like(call, *best) : best;
}

/// The first argument of the layout, for the fault that takes equal ones for the same.
std::size_t Rank::first_like(const WrapperCall& call, std::size_t input) const {
  const auto layout_of = [&](std::size_t i) { return value_of(call.inputs[i].value).layout; };
  std::size_t first = 0;
  while (layout_of(first) != layout_of(input))
    ++first;
  return first;
}

/// An op in the body saves a tensor: it is kept, or a slot waits for the replay to bring it.
Flow Rank::pack_excluded(Walk& walk, const Tensor& tensor, SavedSlot& slot) {
  WrapperCall& call = *walk.wrapper;
  CheckpointFrame& frame = *frames_[call.frame];
  if (remat_rules_.handles_regions) return pack_saved(walk, tensor, slot);
  const ShownCall shown_as = shown_call(frame, *call.wrapper, call.number);
  std::optional<std::size_t> from;
  if (slot.recorded != nullptr) {
    from = slot.recorded->input;
  } else if (exclusion_rules_.rederives) {
    from = rederived_from(walk, tensor);
  }
  // A body that runs in a replay saves in slots of its own.
  slot.number = slot.recorded != nullptr && !walk.is_replay ? slot.recorded->number
                                                            : log_->book().excluded_slot++;
  slot.is_excluded = true;
  const auto mark = planted_.marks.find(tensor.id);
  if (!from && mark != planted_.marks.end() && mark->second.frame_number == frame.number) {
    const PlantedState::Mark& left = mark->second;
    make_input_slot(call.frame, *left.wrapper, left.call, left.input, tensor, slot);
    return Flow::done;
  }
  if (!from) {
    slot.where = SavedSlot::Where::kept;
    slot.kept = tensor.shared_as(OwnerClass::excl_saved);
    keep_for_offload(walk, KeptAs::excluded, tensor);
    slot.version = ledger_.version(tensor.hold.storage());
    if (log_->is_on()) log_->excluded_pack(slot_name(slot), shown_as, {}, shown(tensor, true));
    return Flow::done;
  }
  make_input_slot(call.frame, *call.wrapper, call.number, *from, tensor, slot);
  frame.input_slots[slot.index].entered_version = call.inputs[*from].version;
  call.slots.push_back(slot.index);
  return Flow::done;
}

/// The saved tensor is let go of: a replay is to bring it from this input of the call.
InputSlot& Rank::add_input_slot(std::uint32_t frame_index, const WrapperBegin& wrapper,
                                std::size_t input, const Tensor& tensor, SavedSlot& slot) {
  CheckpointFrame& frame = *frames_[frame_index];
  slot.where = SavedSlot::Where::input_slot;
  slot.frame = frame_index;
  slot.index = static_cast<std::uint32_t>(frame.input_slots.size());
  InputSlot& made = frame.input_slots.emplace_back();
  made.wrapper = &wrapper;
  made.input = input;
  made.value = tensor.value;
  made.element = element_of(tensor);
  made.entered_begin = ledger_.begin(tensor.hold.storage());
  made.number = slot.number;
  ++frame.n_input_slots_alive;
  return made;
}

void Rank::make_input_slot(std::uint32_t frame_index, const WrapperBegin& wrapper,
                           std::int64_t call, std::size_t input, const Tensor& tensor,
                           SavedSlot& slot) {
  add_input_slot(frame_index, wrapper, input, tensor, slot).call = call;
  if (!log_->is_on()) return;
  log_->excluded_pack(slot_name(slot), shown_call(*frames_[frame_index], wrapper, call),
                      wrapper.inputs[input].path, shown(tensor, true));
}

}  // namespace remat
