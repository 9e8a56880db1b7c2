#include <algorithm>
#include <charconv>

#include "model/op_saves.hpp"
#include "traces/rebuild/forward_builder.hpp"

// Regions of torch_remat in a forward: which saves of a body a replay brings, and which outputs are
// kept for it (observed-torch.md §5, §8 R11).

namespace remat {
namespace {

/// Others are counted on from the largest.
constexpr std::int64_t slot_number_max = INT32_MAX;

/// 12 of "r12", and of "act:saved_input.12".
std::optional<std::int64_t> number_at_end(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
    --begin;
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  if (fault != std::errc() || number > slot_number_max) return std::nullopt;
  return number;
}

}  // namespace

bool ForwardBuilder::observe_remat(const EventView& event) {
  switch (event.kind()) {
    case Kind::region_begin:
      begin_remat_region(event);
      return true;
    case Kind::region_end:
      end_remat_region();
      return true;
    case Kind::remat_persist:
      observe_persist(event);
      return true;
    case Kind::remat_user_pack:
      observe_user_pack(event);
      return true;
    default:
      return false;
  }
}

void ForwardBuilder::begin_remat_region(const EventView& event) {
  assign_packs(nullptr);
  if (is_inside_reentrant()) refuse("a region of torch_remat inside a reentrant one");
  if (is_saving()) refuse("a region of torch_remat inside one that is saved");
  remat_regions_.push_back({forward_.statements.size(), open_.size(), {}});
  WrapperBegin region;
  region.name = event.text(Field::region);
  region.policy = event.text(Field::policy) == "save" ? WrapperBegin::Policy::save
                                                      : WrapperBegin::Policy::recompute;
  region.is_recorded = true;
  forward_.statements.emplace_back(std::move(region));
}

void ForwardBuilder::end_remat_region() {
  assign_packs(nullptr);
  if (remat_regions_.empty()) {
    refuse("a region of torch_remat is left that was not entered");
    return;
  }
  const OpenRemat region = std::move(remat_regions_.back());
  remat_regions_.pop_back();
  if (open_.size() != region.n_regions)
    refuse("a checkpointed region and one of torch_remat overlap");
  std::get<WrapperBegin>(forward_.statements[region.begin]).end = forward_.statements.size();
  forward_.statements.emplace_back(WrapperEnd{region.begin});
  for (const ValueId value : region.persists)
    forward_.statements.emplace_back(NeedsTensor{value});
}

/// The body that runs is that of a region which a replay leaves out.
bool ForwardBuilder::is_saving() const {
  return !remat_regions_.empty() &&
         is_left_out(std::get<WrapperBegin>(forward_.statements[remat_regions_.back().begin]));
}

void ForwardBuilder::observe_persist(const EventView& event) {
  const auto tensor = event.tensor(Field::tensor);
  const auto id = tensor ? tensor->tensor : std::nullopt;
  // What is kept is a detached tensor; with hooks of the user's the recording shows no other.
  const bool is_the_last = last_detached_ && (!id || *id == last_detached_->tensor);
  const auto value = is_the_last ? std::optional(last_detached_->of)
                     : tensor    ? tensors_->value_of(*tensor)
                                 : std::nullopt;
  if (!value) {
    refuse("a region keeps an output that no event shows");
    return;
  }
  if (is_saving()) {
    remat_regions_.back().persists.push_back(*value);
  } else {
    forward_.statements.emplace_back(NeedsTensor{*value});
  }
}

/// A tensor that a saved region's body saves goes through the user's hooks.
void ForwardBuilder::observe_user_pack(const EventView& event) {
  if (event.text(Field::save_kind) != "BACKWARD" || !is_saving()) return;
  if (!last_detached_) {
    refuse("a user's hook packs a tensor that no event shows");
    return;
  }
  pending_.push_back({last_detached_->of, last_detached_->tensor, event.seq(), ExcludedSlot{-1}});
}

bool ForwardBuilder::observe_remat_pack(const EventView& event) {
  const std::string_view role = event.text(Field::role);
  if (role != "remat_save" && role != "remat_saved_input") return false;
  const auto number = number_at_end(event.text(Field::slot));
  if (!is_saving() || !number) {
    refuse("a region's save outside its body, or in a slot without a number");
    return true;
  }
  PendingPack pack{.value = ValueId(0),
                   .tensor = -1,
                   .seq = event.seq(),
                   .excluded = ExcludedSlot{*number, std::nullopt}};
  const auto tensor = event.tensor(Field::tensor);
  const auto value = tensor ? tensors_->value_of(*tensor) : std::nullopt;
  if (role == "remat_save" && !value) {
    refuse("a region saves a tensor that no event shows");
    return true;
  }
  if (value) pack.value = *value;
  if (role == "remat_saved_input") {
    pack.path = event.text(Field::path);
    pack.is_view = event.is_true(Field::view);
  }
  pending_.push_back(std::move(pack));
  return true;
}

/// The value was made before the region that is open.
bool ForwardBuilder::is_from_outside(ValueId value) const {
  for (std::size_t at = remat_regions_.back().begin; at < forward_.statements.size(); ++at) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op != nullptr && std::count(op->outputs.begin(), op->outputs.end(), value) > 0)
      return false;
  }
  return true;
}

/// Which input of the op the recording does not show: by the op's own order of saves where their
/// number agrees, else the first that lies on a storage from outside the region.
std::optional<std::size_t> ForwardBuilder::untold_input(const OpStatement& op, std::size_t nth,
                                                        std::size_t n,
                                                        const std::vector<bool>& taken) const {
  std::vector<Save> by_table = saves_by_table(*program_, op);
  std::erase_if(by_table, [](const Save& save) { return save.after_op; });
  if (by_table.size() == n && by_table[nth].factor < op.inputs.size()) return by_table[nth].factor;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (!taken[i] && is_from_outside(argument_of(op.inputs[i]))) return i;
  return std::nullopt;
}

/// The tensor that the region was given and that this one looks at: itself, or what the body made
/// a view of.
ValueId ForwardBuilder::argument_of(ValueId saved) const {
  if (is_from_outside(saved)) return saved;
  for (std::size_t at = remat_regions_.back().begin; at < forward_.statements.size(); ++at) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs) {
      const bool looks_at_it = program_->values[input].buffer == program_->values[saved].buffer;
      if (looks_at_it && is_from_outside(input)) return input;
    }
  }
  return saved;
}

/// Of a custom Function's node, which saves once its body has run: the argument that is known under
/// this path, or the first that the region reads and no other path has.
std::optional<ValueId> ForwardBuilder::untold_argument(const PendingPack& pack) const {
  const auto& region = std::get<WrapperBegin>(forward_.statements[remat_regions_.back().begin]);
  for (const WrapperBegin::Input& input : region.inputs)
    if (input.path == pack.path) return input.value;
  for (std::size_t at = remat_regions_.back().begin; at < forward_.statements.size(); ++at) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs) {
      const bool is_taken =
          std::any_of(region.inputs.begin(), region.inputs.end(),
                      [&](const WrapperBegin::Input& known) { return known.value == input; });
      if (!is_taken && is_from_outside(input)) return input;
    }
  }
  return std::nullopt;
}

/// The tensor has been found: so is the argument that a replay brings it from.
void ForwardBuilder::resolve_untold(PendingPack& pack, ValueId value) {
  pack.value = value;
  auto& region = std::get<WrapperBegin>(forward_.statements[remat_regions_.back().begin]);
  const auto is_it = [&](const WrapperBegin::Input& input) { return input.path == pack.path; };
  const auto known = std::find_if(region.inputs.begin(), region.inputs.end(), is_it);
  pack.excluded->input = static_cast<std::size_t>(known - region.inputs.begin());
  if (known == region.inputs.end())
    region.inputs.push_back({pack.is_view ? argument_of(value) : value, pack.path});
}

}  // namespace remat
