#include "traces/rebuild/forward_builder.hpp"

#include <algorithm>

#include "model/op_saves.hpp"
#include "model/op_values.hpp"

namespace remat {
namespace {

/// Regions inside regions: a real program has a handful.
constexpr std::size_t depth_max = 256;

}  // namespace

void ForwardBuilder::observe(const EventView& event) {
  if (observe_excluded(event) || observe_remat(event)) return;
  switch (event.kind()) {
    case Kind::unit_begin:
      begin_unit(event);
      break;
    case Kind::unit_end:
      end_unit();
      break;
    case Kind::frame_create:
      create_frame(event);
      break;
    case Kind::inputs_save:
      save_inputs(event);
      break;
    case Kind::op:
      observe_op(event);
      break;
    case Kind::pack:
      observe_pack(event);
      break;
    case Kind::sac_decide:
      observe_decision(event);
      break;
    case Kind::mutate:
      observe_write(event);
      break;
    case Kind::storage_free:
      if (const auto storage = event.integer(Field::storage)) release(*storage);
      break;
    case Kind::phase_end:
      assign_packs(nullptr);
      close_implicit_regions();
      if (!open_.empty() || !wrappers_.empty() || !remat_regions_.empty())
        refuse("a forward ends inside a region: what was raised there is not recorded");
      break;
    case Kind::unpack_begin:
    case Kind::unpack:
      refuse("a gradient is asked for inside a forward: what for is not recorded");
      break;
    default:
      break;
  }
}

void ForwardBuilder::begin_unit(const EventView& event) {
  assign_packs(nullptr);
  close_implicit_regions();
  if (open_.size() >= depth_max) {
    refuse("regions are nested more than 256 deep");
    return;
  }
  RegionBegin region;
  region.name = event.text(Field::unit);
  region.invocation = event.integer(Field::inv);
  region.kind =
      event.boolean(Field::checkpointed) == false ? RegionKind::unit : RegionKind::checkpointed;
  region.reentrant = event.is_true(Field::reentrant);
  region.frame = event.integer(Field::frame);
  if (is_inside_reentrant() && region.kind == RegionKind::checkpointed && !region.reentrant) {
    refuse("a non-reentrant region inside a reentrant one packs nothing in forward (R13)");
  }
  open_.push_back({forward_.statements.size(), region.frame, false, false,
                   region.reentrant && region.kind == RegionKind::checkpointed});
  forward_.statements.emplace_back(std::move(region));
}

void ForwardBuilder::end_unit() {
  // What a reentrant region's own node saves: its tensor arguments, after its body.
  if (!open_.empty() && open_.back().reentrant) {
    RegionBegin& region = region_at(open_.back().begin);
    for (const PendingPack& pack : pending_)
      region.inputs.push_back(pack.value);
    if (pending_.empty() && !shows_plain_saves_)
      region.inputs = read_from_outside(open_.back().begin);
    pending_.clear();
    mark_reentrant_output(open_.back().begin);
  }
  assign_packs(nullptr);
  while (!open_.empty() && open_.back().implicit)
    close_region();
  if (!open_.empty()) close_region();
}

/// R8: the output is the last op's; it requires grad where an argument does, whatever the body did.
void ForwardBuilder::mark_reentrant_output(std::size_t begin) {
  const std::vector<ValueId>& inputs = region_at(begin).inputs;
  const bool requires_grad = std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
    return program_->values[input].requires_grad;
  });
  for (std::size_t at = forward_.statements.size(); at-- > begin;) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId output : op->outputs) {
      ProgramValue& value = program_->values[output];
      value.requires_grad = requires_grad && value.floating;
    }
    return;
  }
}

/// R8: the tensors that want a gradient, read in the region and made outside it, but parameters.
std::vector<ValueId> ForwardBuilder::read_from_outside(std::size_t begin) const {
  IdSet made;
  IdSet seen;
  std::vector<ValueId> read;
  for (std::size_t at = begin; at < forward_.statements.size(); ++at) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs) {
      const ProgramValue& value = program_->values[input];
      const bool is_param = program_->buffers[value.buffer].role == BufferRole::param;
      if (made.contains(input.index()) || seen.contains(input.index()) || is_param ||
          !value.requires_grad)
        continue;
      seen.insert(input.index());
      read.push_back(input);
    }
    for (const ValueId output : op->outputs)
      made.insert(output.index());
  }
  return read;
}

void ForwardBuilder::close_region() {
  const OpenRegion region = open_.back();
  open_.pop_back();
  if (!wrappers_.empty() && wrappers_.back().begin > region.begin)
    refuse("a region and an excluded one overlap");
  region_at(region.begin).end = forward_.statements.size();
  region_at(region.begin).tells_boundaries = true;
  forward_.statements.emplace_back(RegionEnd{region.begin});
  last_op_.reset();
}

void ForwardBuilder::close_implicit_regions() {
  while (!open_.empty() && open_.back().implicit)
    close_region();
}

void ForwardBuilder::create_frame(const EventView& event) {
  const auto frame = event.integer(Field::frame);
  assign_packs(nullptr);
  const bool is_known = !open_.empty() && !open_.back().implicit && open_.back().frame == frame;
  if (!is_known) {
    // An input that is a slot of an open frame lies inside that frame.
    const auto parent = frames_->parents.find(frame.value_or(-1));
    while (!open_.empty() && open_.back().implicit &&
           (parent == frames_->parents.end() || open_.back().frame != parent->second))
      close_region();
    if (event.boolean(Field::early_stop) == false) {
      refuse("a frame without unit_begin and without early stop: where it ends is not told");
    }
    RegionBegin region;
    region.name = event.text(Field::unit);
    region.invocation = event.integer(Field::inv);
    region.frame = frame;
    open_.push_back({forward_.statements.size(), frame, true, false, false});
    forward_.statements.emplace_back(std::move(region));
  }
  RegionBegin& region = region_at(open_.back().begin);
  region.early_stop = event.boolean(Field::early_stop).value_or(true);
  region.knows_sessions = event.text(Field::impl) == "hyper_parallel";
  frame_being_made_ = frame;
  input_packs_.clear();
}

void ForwardBuilder::save_inputs(const EventView& event) {
  frame_being_made_.reset();
  if (open_.empty()) return;
  RegionBegin& region = region_at(open_.back().begin);
  for (std::size_t i = 0; i < event.list_size(Field::tensors); ++i) {
    const auto value = event.lists_tensors(Field::tensors)
                           ? tensors_->value_of(event.tensor_item(Field::tensors, i))
                           : tensors_->value_of(event.list_item(Field::tensors, i));
    if (!value) continue;
    tensors_->require_this_forward(*value);
    region.inputs.push_back(*value);
  }
  add_input_slots(region);
}

void ForwardBuilder::observe_pack(const EventView& event) {
  if (observe_remat_pack(event)) return;
  const auto tensor = event.tensor(Field::tensor);
  const std::string_view role = event.text(Field::role);
  if (!tensor || role == "unit_input") return;
  if (role == "plain" && !frame_being_made_) close_implicit_regions();
  const auto value = tensors_->value_of(*tensor);
  if (!value || take_boundary_pack(event, *value)) return;
  std::vector<PendingPack>& packs = frame_being_made_ ? input_packs_ : pending_;
  packs.push_back({*value, tensor->tensor.value_or(-1), event.seq(), excluded_slot(event)});
  if (frame_being_made_) return;
  if (open_.empty() || !open_.back().implicit) return;
  const auto last = frames_->last_packs.find(open_.back().frame.value_or(-1));
  const bool stops = region_at(open_.back().begin).early_stop;
  open_.back().is_closing =
      stops && last != frames_->last_packs.end() && last->second == event.seq();
}

void ForwardBuilder::observe_decision(const EventView& event) {
  const std::string_view name = event.text(Field::op);
  for (std::size_t at = forward_.statements.size(); at-- > 0;) {
    auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    if (op == nullptr || op->name != name) continue;
    op->kept = event.is_true(Field::saved);
    return;
  }
}

void ForwardBuilder::release(std::int64_t storage) {
  const std::vector<ValueId> values = tensors_->made_on(storage);
  if (!values.empty()) forward_.statements.emplace_back(Release{values});
}

void ForwardBuilder::observe_op(const EventView& event) {
  for (const Field list : {Field::reads, Field::outputs}) {
    for (std::size_t i = 0; i < event.list_size(list); ++i)
      tensors_->describe(event.tensor_item(list, i));
  }
  if (pass_boundary(event)) return;
  if (event.has(Field::internal)) {  // a hook's: its output is another name for its input
    const auto value = event.list_size(Field::inputs) > 0
                           ? tensors_->value_of(event.list_item(Field::inputs, 0))
                           : std::nullopt;
    for (std::size_t i = 0; value && i < event.list_size(Field::outputs); ++i)
      if (const auto id = event.tensor_item(Field::outputs, i).tensor) tensors_->alias(*id, *value);
    return;
  }
  OpStatement op = make_op(event);
  if (plain_op_name(op.name) == "detach") {  // no node, and no end of the packs before it
    for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i)
      op.outputs.push_back(tensors_->make_detached(event.tensor_item(Field::outputs, i)));
    if (!op.inputs.empty() && !op.outputs.empty())
      last_detached_ = {op.inputs[0], event.tensor_item(Field::outputs, 0).tensor.value_or(-1)};
    forward_.statements.emplace_back(std::move(op));
    return;
  }
  if (copies_->contains(event.seq())) {
    const ValueId made = tensors_->make(event.tensor_item(Field::outputs, 0), false);
    copied_.insert_or_assign(made.index(), op.inputs.front());
    return;
  }
  assign_packs(&op);
  const bool shows = shows_saves();
  const bool is_closing = !open_.empty() && open_.back().is_closing;
  // The region's last pack was the op's before: this one lies outside.
  if (is_closing && op.saves.empty()) close_implicit_regions();
  const bool has_saves_yet = !op.saves.empty();
  add_outputs(event, op);
  if (!shows) {
    op.makes_node = wants_grad(op);
    if (op.makes_node) op.saves = saves_by_table(*program_, op);
  } else {
    // A node that saves nothing shows nothing: it is there if the kind never saves.
    op.makes_node = has_saves_yet || (wants_grad(op) && saves_by_table(*program_, op).empty());
  }
  last_op_ = forward_.statements.size();
  forward_.statements.emplace_back(std::move(op));
  if (is_closing) close_implicit_regions();
}

/// Detached copies that nobody reads are a framework's own (a selective policy keeps one): its
/// cache makes them, not the model.
void ForwardBuilder::drop_unread_copies() {
  IdSet read;
  for (const Statement& statement : forward_.statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    const auto* region = std::get_if<RegionBegin>(&statement);
    const std::vector<ValueId> none;
    if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
      for (const WrapperBegin::Input& input : wrapper->inputs)
        read.insert(input.value.index());
      for (const ValueId output : wrapper->outputs)
        read.insert(output.index());
    }
    for (const ValueId value : op != nullptr       ? op->inputs
                               : region != nullptr ? region->inputs
                                                   : none)
      read.insert(value.index());
    if (op == nullptr) continue;
    for (const Save& save : op->saves)
      read.insert(save.value.index());
  }
  for (Statement& statement : forward_.statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr || plain_op_name(op->name) != "detach") continue;
    const bool is_read = std::any_of(op->outputs.begin(), op->outputs.end(),
                                     [&](ValueId output) { return read.contains(output.index()); });
    if (!is_read) statement = Release{};
  }
}

bool ForwardBuilder::has_regions() const {
  return std::any_of(forward_.statements.begin(), forward_.statements.end(),
                     [](const Statement& s) { return std::holds_alternative<RegionBegin>(s); });
}

bool ForwardBuilder::enters_region_with_sessions() const {
  return !open_.empty() &&
         std::get<RegionBegin>(forward_.statements[open_.back().begin]).knows_sessions;
}

Forward ForwardBuilder::finish() {
  assign_packs(nullptr);
  if (!wrappers_.empty() || !remat_regions_.empty())
    refuse("a forward ends inside an excluded region");
  while (!open_.empty())
    close_region();
  drop_unread_copies();
  for (std::size_t at = forward_.statements.size(); at-- > 0 && !forward_.root;) {
    const auto* op = std::get_if<OpStatement>(&forward_.statements[at]);
    const auto* region = std::get_if<RegionBegin>(&forward_.statements[at]);
    if (region != nullptr && region->reentrant) continue;
    if (const auto* left = std::get_if<WrapperEnd>(&forward_.statements[at])) {
      for (const WrapperBegin::Boundary& boundary :
           std::get<WrapperBegin>(forward_.statements[left->begin]).boundaries)
        if (program_->values[boundary.value].floating) forward_.root = boundary.value;
    }
    if (op == nullptr || !op->makes_node || op->by_caller) continue;
    for (const ValueId output : op->outputs)
      if (!forward_.root && program_->values[output].floating) forward_.root = output;
  }
  IdSet seen;
  const auto meet = [&](ValueId value) {
    const ProgramValue& leaf = program_->values[value];
    if (!tensors_->is_leaf(value) || !leaf.requires_grad || seen.contains(value.index()) ||
        program_->buffers[leaf.buffer].role != BufferRole::input)
      return;
    seen.insert(value.index());
    forward_.inputs.push_back(value);
  };
  for (const Statement& statement : forward_.statements) {
    if (const auto* op = std::get_if<OpStatement>(&statement))
      std::for_each(op->inputs.begin(), op->inputs.end(), meet);
    if (const auto* region = std::get_if<RegionBegin>(&statement))
      std::for_each(region->inputs.begin(), region->inputs.end(), meet);
    if (const auto* wrapper = std::get_if<WrapperBegin>(&statement))
      std::for_each(wrapper->outputs.begin(), wrapper->outputs.end(), meet);
  }
  return std::move(forward_);
}

void ForwardBuilder::observe_write(const EventView& event) {
  const auto tensor = event.integer(Field::tensor);
  const auto value = tensor ? tensors_->value_of(*tensor) : std::nullopt;
  if (!value) return;
  if (event.phase() == Phase::forward) {
    // By the op before, whatever its name; an in-place one says so itself.
    auto* op = last_op_ ? std::get_if<OpStatement>(&forward_.statements[*last_op_]) : nullptr;
    if (op == nullptr || op->writes) return;
    const auto looks_at_it = [&](ValueId input) {
      return program_->values[input].buffer == program_->values[*value].buffer;
    };
    const auto written = std::find_if(op->inputs.begin(), op->inputs.end(), looks_at_it);
    const auto shown = std::find_if(op->outputs.begin(), op->outputs.end(), looks_at_it);
    if (written == op->inputs.end() || shown == op->outputs.end()) return;
    op->writes = *written;
    std::iter_swap(op->outputs.begin(), shown);
    return;
  }
  tensors_->require_this_forward(*value);
  OpStatement op;
  op.name = "add_";
  op.kind = find_op_kind("add");
  op.seed = op_seed("caller", program_->values[*value].name);
  op.inputs = {*value};
  op.writes = *value;
  op.by_caller = true;
  const bool is_leaf = tensors_->is_leaf(*value);
  op.outputs = {is_leaf ? *value : tensors_->make_written(*value)};
  forward_.statements.emplace_back(std::move(op));
}

}  // namespace remat
