#include "sim/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/errors.hpp"
#include "model/random_bits.hpp"
#include "sim/offloader.hpp"

namespace remat {
namespace {

constexpr std::uint64_t leaf_stream = 0x6c656166ULL;
constexpr std::uint64_t hole_stream = 0x686f6c65ULL;
constexpr std::int64_t no_microbatch = -1;

/// The first number past those that the program gives its frames.
std::int64_t first_free_frame(const Program& program) {
  std::int64_t next = 0;
  for (const Forward& forward : program.forwards) {
    for (const Statement& statement : forward.statements) {
      const auto* region = std::get_if<RegionBegin>(&statement);
      if (region != nullptr && region->frame)
        next = std::max(next, saturated_sum(*region->frame, 1));
    }
  }
  return next;
}

/// Likewise of slots in the bodies of excluded regions.
std::int64_t first_free_slot(const Program& program) {
  std::int64_t next = 0;
  for (const Forward& forward : program.forwards) {
    for (const Statement& statement : forward.statements) {
      const auto* op = std::get_if<OpStatement>(&statement);
      if (op == nullptr) continue;
      for (const Save& save : op->saves)
        if (save.excluded) next = std::max(next, save.excluded->number + 1);
    }
  }
  return next;
}

}  // namespace

Rank::Rank(const Program& program, const Protocol& protocol, const RankOptions& options,
           EventLog& log, const std::optional<OffloadPolicy>& offload)
    : program_(&program),
      protocol_(&protocol),
      frame_rules_(protocol.frame_rules()),
      cache_rules_(protocol.cache_rules()),
      exclusion_rules_(protocol.exclusion_rules()),
      remat_rules_(protocol.remat_rules()),
      units_(protocol.units()),
      options_(options),
      log_(&log),
      port_(program, log),
      ledger_(log),
      tape_(*this) {
  RunBook& book = log_->book();
  book.frame = std::max(book.frame, first_free_frame(program));
  book.excluded_slot = std::max(book.excluded_slot, first_free_slot(program));
  if (!offload) return;
  offloader_ = std::make_unique<Offloader>(program, *offload, options.links, ledger_, log);
  if (has(RankFault::copies_unordered)) offloader_->drop_waits();
}

Rank::~Rank() {
  log_->stop();
  // Slots belong to frames: those go last.
  leaked_graphs_.clear();
  graphs_.clear();
  drop_entries();
}

Ring Rank::element_of(const Tensor& tensor) const {
  const ProgramValue& value = value_of(tensor.value);
  const std::uint32_t storage = tensor.hold.storage();
  const Ring element =
      ledger_.element(storage) * value.constant + ledger_.holes(storage) * value.of_holes;
  return tensor.is_astray ? element + constant_of(hole_stream) : element;
}

std::uint32_t Rank::allocate(BufferId buffer, std::string_view maker) {
  const ProgramBuffer& made = program_->buffers[buffer];
  const std::uint32_t storage = ledger_.allocate(made.bytes, BufferRole::none, maker);
  if (made.has_holes) ledger_.set_holes(storage, content_of_holes(buffer));
  return storage;
}

/// Nobody wrote them: another content each time, and in a replay another than in forward. The run
/// without checkpointing finds in forward what every other finds there.
Ring Rank::content_of_holes(BufferId buffer) {
  const bool is_replay = log_->phase() == Phase::replay;
  const auto number = counts_.hole_fills[{buffer.index(), microbatch_.value_or(-1), is_replay}]++;
  const std::uint64_t place = (std::uint64_t{buffer.index()} << 32U) +
                              (static_cast<std::uint64_t>(microbatch_.value_or(-1) + 1) << 1U) +
                              (is_replay ? 1 : 0);
  return constant_of(random_bits(options_.seed, hole_stream + number, place));
}

ShownTensor Rank::shown(const Tensor& tensor, bool with_value) const {
  const std::uint32_t storage = tensor.hold.storage();
  return {
      .value = tensor.value,
      .id = tensor.id,
      .storage = ledger_.number(storage),
      .version = ledger_.version(storage),
      .begin = tensor.is_astray ? 0 : ledger_.begin(storage),
      .element = with_value && log_->is_on() ? std::optional(element_of(tensor)) : std::nullopt};
}

void Rank::set_up() {
  log_->set_phase(Phase::setup);
  for (const ValueId parameter : program_->parameters)
    leaf(parameter, OwnerClass::param);
  warn_of_config();
}

std::int64_t Rank::leaf_key(std::uint32_t index, BufferRole role) const {
  const bool is_own = role == BufferRole::input && options_.inputs_per_microbatch && microbatch_;
  return is_own ? ((*microbatch_ + 1) << 32) + index : std::int64_t{index};
}

void Rank::begin_microbatch(std::optional<std::int64_t> microbatch, Phase phase) {
  microbatch_ = microbatch;
  log_->set_microbatch(microbatch);
  log_->set_phase(phase);
}

/// What the program reads and does not make: a parameter, an input. Made when first asked for.
Tensor Rank::leaf(ValueId value, OwnerClass owner) {
  const BufferId buffer = value_of(value).buffer;
  const ProgramBuffer& from = program_->buffers[buffer];
  const std::int64_t key = leaf_key(value.index(), from.role);
  if (const auto known = leaves_.find(key); known != leaves_.end())
    return known->second.shared_as(owner);
  REMAT_INVARIANT(from.role != BufferRole::none);  // an op makes it: it was used before or too late
  const std::int64_t buffer_key = leaf_key(buffer.index(), from.role);
  const OwnerClass held_as = from.role == BufferRole::param ? OwnerClass::param : OwnerClass::input;
  const Phase phase = log_->phase();
  const auto task = log_->graph_task();
  log_->set_phase(Phase::setup);
  auto place = leaf_buffers_.find(buffer_key);
  if (place == leaf_buffers_.end()) {
    const std::uint32_t storage = ledger_.allocate(from.bytes, from.role, "setup");
    ledger_.set_element(storage, constant_of(random_bits(options_.seed, leaf_stream,
                                                         static_cast<std::uint64_t>(buffer_key))));
    place = leaf_buffers_.emplace(buffer_key, Owned(ledger_, storage, held_as)).first;
  }
  Tensor tensor{place->second.shared_as(held_as), value, log_->book().tensor++};
  log_->leaf(shown(tensor));
  log_->set_phase(phase);
  log_->set_graph_task(task);
  return leaves_.emplace(key, std::move(tensor)).first->second.shared_as(owner);
}

Variable* Rank::find(Walk& walk, ValueId value) {
  return walk.variables.find(value);
}

Tensor Rank::tensor_of(Walk& walk, ValueId value, OwnerClass owner) {
  if (const Variable* variable = find(walk, value)) return variable->tensor.shared_as(owner);
  return leaf(value, owner);
}

std::string Rank::slot_name(const SavedSlot& slot) const {
  if (slot.where == SavedSlot::Where::holder)
    return fmt::format("f{}.{}", frames_[slot.frame]->number, slot.index);
  if (slot.where == SavedSlot::Where::input_slot) {
    const CheckpointFrame& frame = *frames_[slot.frame];
    return input_slot_name(frame, frame.input_slots[slot.index]);
  }
  const std::string_view of_a_body = remat_rules_.handles_regions ? "r" : "x";
  return fmt::format("{}{}", slot.is_excluded ? of_a_body : "p", slot.number);
}

void Rank::release(SavedSlot& slot) {
  if (slot.where == SavedSlot::Where::nowhere) return;
  const bool is_shown = log_->is_on() && (slot.where != SavedSlot::Where::kept || slot.number >= 0);
  const std::string name = is_shown ? slot_name(slot) : std::string();
  const SavedSlot::Where where = std::exchange(slot.where, SavedSlot::Where::nowhere);
  if (where == SavedSlot::Where::kept) {
    if (is_shown) log_->holder_free(name, std::nullopt);
    slot.kept.hold.drop();
    return;
  }
  CheckpointFrame& frame = *frames_[slot.frame];
  const std::int64_t number = frame.number;
  if (where == SavedSlot::Where::input_slot) {
    InputSlot& input = frame.input_slots[slot.index];
    log_->holder_free(name, number);
    input.alive = false;
    input.tensor.hold.drop();
    --frame.n_input_slots_alive;
    if (frame.is_over()) free_frame(slot.frame);
    return;
  }
  frame.holders[slot.index].alive = false;
  for (ReplaySession& session : frame.sessions) {
    if (slot.index < session.slots.size()) session.slots[slot.index].tensor.hold.drop();
  }
  --frame.n_alive;
  if (frame.is_over()) free_frame(slot.frame);
  log_->holder_free(name, number);
}

void Rank::free_frame(std::uint32_t index) {
  const std::unique_ptr<CheckpointFrame> frame = std::move(frames_[index]);
  free_frames_.push_back(index);
  log_->frame_free(frame->number);
  for (SavedSlot& input : frame->inputs)
    release(input);
}

std::uint32_t Rank::make_frame(Walk& walk, std::size_t at, const RegionBegin& region) {
  std::uint32_t index = 0;
  if (free_frames_.empty()) {
    index = static_cast<std::uint32_t>(frames_.size());
    frames_.emplace_back();
  } else {
    index = free_frames_.back();
    free_frames_.pop_back();
  }
  frames_[index] = std::make_unique<CheckpointFrame>();
  CheckpointFrame& frame = *frames_[index];
  frame.number = region.frame && !walk.is_replay ? *region.frame : log_->book().frame++;
  frame.forward = walk.forward;
  frame.begin = at;
  frame.early_stop = protocol_->stops_early(
      {.reentrant = region.reentrant, .early_stop = region.early_stop, .owner = region.owner});
  return index;
}

Rank::Graph* Rank::graph_of(std::optional<std::int64_t> microbatch) {
  const auto found = graphs_.find(microbatch.value_or(no_microbatch));
  return found == graphs_.end() ? nullptr : &found->second;
}

Flow Rank::run_forward(std::size_t forward, std::optional<std::int64_t> microbatch) {
  const std::int64_t key = microbatch.value_or(no_microbatch);
  graphs_.erase(key);
  if (offloader_ != nullptr) offloader_->begin_forward(microbatch, forward);
  const Forward& program = program_->forwards[forward];
  begin_microbatch(microbatch, Phase::forward);
  for (const ValueId input : program.inputs)
    leaf(input, OwnerClass::input);
  log_->phase_border(true, std::nullopt);
  Walk walk;
  walk.forward = forward;
  const Flow flow = run(walk, 0, program.statements.size());
  log_->set_phase(Phase::forward);
  // What something else holds too lives on by that: the caller's variable of it ends here.
  walk.variables.keep_if([&](const Variable& variable) {
    const std::vector<ValueId>& others = program.other_roots;
    const bool is_root =
        program.root == variable.tensor.value ||
        std::find(others.begin(), others.end(), variable.tensor.value) != others.end();
    return is_root || ledger_.has_one_owner(variable.tensor.hold.storage());
  });
  end_layers(flow);
  if (flow == Flow::failed) log_error();
  log_->phase_border(false, std::nullopt);
  log_->set_phase(Phase::setup);
  Graph& graph = graphs_[key];
  graph.forward = forward;
  graph.variables = std::move(walk.variables);
  return flow;
}

void Rank::drop_graph(std::optional<std::int64_t> microbatch) {
  const auto found = graphs_.find(microbatch.value_or(no_microbatch));
  if (found == graphs_.end()) return;
  if (has(RankFault::dropped_graphs_kept)) leaked_graphs_.push_back(std::move(found->second));
  graphs_.erase(found);
  if (offloader_ != nullptr) offloader_->drop(microbatch);
}

void Rank::run_update(const std::optional<std::vector<ValueId>>& writes) {
  begin_microbatch(std::nullopt, Phase::optimizer);
  log_->phase_border(true, std::nullopt);
  if (writes) {
    leaf_grads_.clear();
    for (const ValueId value : *writes)
      write_by_caller(value);
  }
  for (auto& [key, gradient] : leaf_grads_) {
    const auto found = leaves_.find(key);
    const auto value = static_cast<std::uint32_t>(key);
    const ProgramValue& parameter = value_of(ValueId(value));
    if (found == leaves_.end() || program_->buffers[parameter.buffer].role != BufferRole::param)
      continue;
    const std::uint32_t storage = found->second.hold.storage();
    const Ring rate = constant_of(random_bits(options_.seed, leaf_stream + 1, value));
    ledger_.set_element(storage, ledger_.element(storage) + rate * gradient.value);
    ledger_.bump_version(storage);
    log_->mutate(found->second.id, ledger_.number(storage));
    log_->update(parameter.name, ledger_.version(storage));
  }
  leaf_grads_.clear();
  log_->phase_border(false, std::nullopt);
  log_->set_phase(Phase::setup);
}

void Rank::zero_gradients() {
  begin_microbatch(std::nullopt, Phase::optimizer);
  log_->zero_grad();
  leaf_grads_.clear();
  log_->set_phase(Phase::setup);
}

/// The caller writes a tensor in place: each storage that something alive knows it by has another
/// version.
void Rank::write_by_caller(ValueId value) {
  const BufferId buffer = value_of(value).buffer;
  IdSet written;
  const auto write = [&](const Tensor& tensor) {
    const std::uint32_t storage = tensor.hold.storage();
    const std::int64_t number = ledger_.number(storage);
    if (value_of(tensor.value).buffer != buffer || written.contains(number)) return;
    written.insert(number);
    ledger_.bump_version(storage);
    log_->mutate(tensor.id, number);
  };
  for (const auto& [key, tensor] : leaves_)
    write(tensor);
  for (const std::unique_ptr<CheckpointFrame>& frame : frames_) {
    if (frame == nullptr) continue;
    for (const SavedSlot& input : frame->inputs)
      if (input.where == SavedSlot::Where::kept) write(input.kept);
  }
  tape_.each_save([&](const SavedSlot& slot) {
    if (slot.where == SavedSlot::Where::kept) write(slot.kept);
  });
}

void Rank::end_step() {
  begin_microbatch(std::nullopt, Phase::setup);
  graphs_.clear();
  if (offloader_ != nullptr) offloader_->end_step();
  // A micro-batch's own inputs do not outlive its step.
  const auto is_of_a_microbatch = [](const auto& entry) { return (entry.first >> 32) > 0; };
  std::erase_if(leaf_grads_, is_of_a_microbatch);
  std::erase_if(leaves_, is_of_a_microbatch);
  std::erase_if(leaf_buffers_, is_of_a_microbatch);
}

}  // namespace remat
