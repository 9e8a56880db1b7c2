#include <algorithm>
#include <charconv>

#include "traces/rebuild/forward_builder.hpp"

// Excluded regions of a forward: their calls, which of their saves a replay fills, and their
// boundaries (observed-hyperparallel.md §6 R15 to R17).

namespace remat {
namespace {

/// The JSON text behind a key of an object's inside: `"arg0"` of `"path":"arg0","origin":"save"`.
std::string json_text_of(std::string_view fields, std::string_view key) {
  const std::size_t at = fields.find(key);
  if (at == std::string_view::npos) return {};
  std::size_t begin = fields.find('"', at + key.size());
  if (begin == std::string_view::npos) return {};
  std::size_t end = begin + 1;
  while (end < fields.size() && fields[end] != '"')
    end += fields[end] == '\\' ? 2 : 1;
  return std::string(fields.substr(begin, end + 1 - begin));
}

/// 12 of "x12".
std::optional<std::int64_t> slot_number(std::string_view name) {
  std::int64_t number = 0;
  if (name.size() < 2 || name[0] != 'x') return std::nullopt;
  const auto [end, fault] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  const bool is_number = fault == std::errc() && end == name.data() + name.size();
  if (!is_number || number > INT32_MAX) return std::nullopt;  // others are counted on from it
  return number;
}

bool is_excluded(std::string_view role) {
  return role == "excl_saved" || role == "excl_input";
}

}  // namespace

bool ForwardBuilder::is_inside_reentrant() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const OpenRegion& outer) { return outer.reentrant; });
}

/// The event is an excluded region's own. One that runs outside all checkpointed regions is code
/// like any other.
bool ForwardBuilder::observe_excluded(const EventView& event) {
  switch (event.kind()) {
    case Kind::wrapper_enter:
      if (event.text(Field::exec) != "plain") enter_wrapper(event);
      return true;
    case Kind::wrapper_exit:
      if (event.text(Field::exec) != "plain") exit_wrapper(event);
      return true;
    case Kind::boundary:
      begin_boundary(event);
      return true;
    case Kind::op_error:
      if (!wrappers_.empty() || enters_region_with_sessions())
        refuse("an op raises inside a region: what follows from that is not told");
      return true;
    case Kind::cache_clear:
      refuse("a region raises in forward: who catches that is not told");
      return true;
    default:
      return false;
  }
}

void ForwardBuilder::enter_wrapper(const EventView& event) {
  assign_packs(nullptr);
  if (is_inside_reentrant()) refuse("an excluded region inside a reentrant one");
  OpenWrapper open{.begin = forward_.statements.size(),
                   .n_regions = open_.size(),
                   .paths = {},
                   .boundaries = {}};
  WrapperBegin wrapper;
  wrapper.name = event.text(Field::wrapper);
  wrapper.save_output = event.boolean(Field::save_output).value_or(true);
  wrapper.tells_outputs = true;
  wrapper.is_recorded = true;
  for (std::size_t i = 0; i < event.list_size(Field::inputs); ++i) {
    const TensorView input = event.tensor_item(Field::inputs, i);
    tensors_->describe(input);
    const auto value = tensors_->value_of(input);
    if (!value) {
      refuse("an excluded region is handed a tensor that no event shows");
      return;
    }
    tensors_->require_this_forward(*value);
    open.paths.push_back(json_text_of(input.extra, "\"path\""));
    wrapper.inputs.push_back({*value, open.paths.back()});
  }
  wrappers_.push_back(std::move(open));
  forward_.statements.emplace_back(std::move(wrapper));
}

void ForwardBuilder::exit_wrapper(const EventView& event) {
  assign_packs(nullptr);
  if (wrappers_.empty()) {
    refuse("an excluded region is left that was not entered");
    return;
  }
  if (event.text(Field::ended_by) != "return")
    refuse("an excluded region's body raises: who catches that is not told");
  const OpenWrapper open = std::move(wrappers_.back());
  wrappers_.pop_back();
  while (open_.size() > open.n_regions && open_.back().implicit)
    close_region();
  if (open_.size() != open.n_regions) refuse("a region and an excluded one overlap");
  const std::size_t end = forward_.statements.size();
  std::vector<ValueId> outputs;
  std::vector<WrapperBegin::Boundary> boundaries;
  for (std::size_t leaf = 0; leaf < event.list_size(Field::outputs); ++leaf) {
    const std::int64_t tensor = event.list_item(Field::outputs, leaf);
    const auto passed =
        std::find_if(open.boundaries.begin(), open.boundaries.end(),
                     [&](const OpenBoundary& boundary) { return boundary.output == tensor; });
    const bool has_boundary = passed != open.boundaries.end();
    const auto value = has_boundary ? passed->input : tensors_->value_of(tensor);
    if (!value) {
      refuse("an excluded region returns a tensor that no event shows");
      return;
    }
    outputs.push_back(*value);
    if (has_boundary) boundaries.push_back({leaf, passed->value, passed->slot});
  }
  const bool all_packed =
      std::all_of(open.boundaries.begin(), open.boundaries.end(),
                  [](const OpenBoundary& boundary) { return boundary.is_packed; });
  if (boundaries.size() != open.boundaries.size() || !all_packed)
    refuse("a recompute boundary without a save, or of no output");
  forward_.statements.emplace_back(WrapperEnd{open.begin});
  auto& wrapper = std::get<WrapperBegin>(forward_.statements[open.begin]);
  wrapper.end = end;
  wrapper.outputs = std::move(outputs);
  wrapper.boundaries = std::move(boundaries);
  if (!wrapper.save_output) require_placeholder();
  if (returns_unkept_argument(wrapper)) {
    refuse(
        "an excluded region returns its argument and keeps no output: who reads which of the "
        "two is not told");
  }
}

/// The placeholder that a replay has for it and the argument itself are then one tensor of forward.
bool ForwardBuilder::returns_unkept_argument(const WrapperBegin& wrapper) const {
  if (wrapper.save_output) return false;
  for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf) {
    const ValueId output = value_after(wrapper, leaf);
    if (std::any_of(wrapper.inputs.begin(), wrapper.inputs.end(),
                    [&](const WrapperBegin::Input& input) { return input.value == output; }))
      return true;
  }
  return false;
}

void ForwardBuilder::begin_boundary(const EventView& event) {
  assign_packs(nullptr);
  const auto input = event.integer(Field::input);
  const auto value = input ? tensors_->value_of(*input) : std::nullopt;
  if (wrappers_.empty() || !value) {
    refuse("a recompute boundary of a tensor that no event shows");
    return;
  }
  wrappers_.back().boundaries.push_back({.input = *value, .output = {}, .slot = {}});
}

/// The view that a boundary hands on: a tensor with a node of its own, whatever came in.
bool ForwardBuilder::pass_boundary(const EventView& op) {
  if (op.text(Field::internal) != "boundary" || wrappers_.empty()) return false;
  std::vector<OpenBoundary>& boundaries = wrappers_.back().boundaries;
  if (boundaries.empty() || boundaries.back().output || op.list_size(Field::outputs) == 0)
    return false;
  const TensorView output = op.tensor_item(Field::outputs, 0);
  boundaries.back().output = output.tensor;
  boundaries.back().value = tensors_->make(output, true);
  return true;
}

bool ForwardBuilder::take_boundary_pack(const EventView& pack, ValueId value) {
  if (wrappers_.empty() || wrappers_.back().boundaries.empty()) return false;
  OpenBoundary& boundary = wrappers_.back().boundaries.back();
  if (boundary.is_packed) return false;
  boundary.is_packed = true;
  boundary.slot = excluded_slot(pack);
  if (!program_->trigger) program_->trigger = value;
  return true;
}

/// Where a save of a body goes; none for a save of the frame, or of nobody's.
std::optional<ExcludedSlot> ForwardBuilder::excluded_slot(const EventView& pack) {
  const std::string_view role = pack.text(Field::role);
  if (!is_excluded(role)) return std::nullopt;
  const auto number = slot_number(pack.text(Field::slot));
  if (wrappers_.empty() || !number) {
    refuse("a slot of an excluded region outside all calls, or without a number");
    return std::nullopt;
  }
  ExcludedSlot slot{*number, std::nullopt};
  if (role != "excl_input") return slot;
  const std::vector<std::string>& paths = wrappers_.back().paths;
  const auto path = std::find(paths.begin(), paths.end(), pack.text(Field::path));
  if (path == paths.end()) {
    refuse("a slot of an excluded region is of no input of its call");
    return std::nullopt;
  }
  slot.input = path - paths.begin();
  return slot;
}

/// A region inside a region, or inside an excluded one, saves its inputs where that one's saves go;
/// some code saves a tensor of its own before them.
void ForwardBuilder::add_input_slots(RegionBegin& region) {
  const auto is_excluded_pack = [](const PendingPack& pack) { return pack.excluded.has_value(); };
  const bool is_in_body = std::any_of(input_packs_.begin(), input_packs_.end(), is_excluded_pack);
  if (input_packs_.empty() || (!is_in_body && input_packs_.size() == region.inputs.size())) return;
  region.inputs.clear();
  for (const PendingPack& pack : input_packs_) {
    region.inputs.push_back(pack.value);
    if (is_in_body) region.input_slots.push_back(pack.excluded.value_or(ExcludedSlot{}));
  }
}

/// What a replay is given for outputs that nobody keeps.
void ForwardBuilder::require_placeholder() {
  if (program_->placeholder) return;
  ProgramBuffer buffer;
  buffer.role = BufferRole::external;
  ProgramValue value;
  value.name = "<placeholder>";
  value.buffer = program_->buffers.push_back(buffer);
  value.layout = {.dtype = "f32", .shape = {0}, .stride = {1}, .offset = 0};
  program_->placeholder = program_->values.push_back(std::move(value));
}

}  // namespace remat
