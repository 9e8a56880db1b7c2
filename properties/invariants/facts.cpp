#include "properties/invariants/facts.hpp"

#include <algorithm>

namespace remat {
namespace {

/// Kinds that speak of one call of a region.
bool names_a_frame(Kind kind) {
  switch (kind) {
    case Kind::unit_begin:
    case Kind::unit_end:
    case Kind::body_begin:
    case Kind::frame_create:
    case Kind::frame_free:
    case Kind::inputs_save:
    case Kind::inputs_unpack_begin:
    case Kind::inputs_unpack:
    case Kind::pack:
    case Kind::repack:
    case Kind::early_stop:
    case Kind::determinism_check:
    case Kind::unpack_begin:
    case Kind::unpack:
    case Kind::unpack_error:
      return true;
    default:
      return false;
  }
}

/// Kinds that speak of one call of an excluded region, or of what it left.
bool names_an_excluded_call(Kind kind) {
  switch (kind) {
    case Kind::wrapper_enter:
    case Kind::wrapper_exit:
    case Kind::slot_fill:
    case Kind::cache_put:
    case Kind::cache_pop:
    case Kind::cache_clear:
    case Kind::boundary:
    case Kind::placeholder:
    case Kind::placeholder_read:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::int64_t Facts::step_begin_seq(std::optional<std::int64_t> rank) const {
  if (!rank) return all_ranks_began_seq_;
  const auto found = rank_began_seq_.find(*rank);
  return found == rank_began_seq_.end() ? all_ranks_began_seq_
                                        : std::max(all_ranks_began_seq_, found->second);
}

void Facts::read_header(const EventView& event) {
  header_.producer = event.text(Field::producer);
  if (event.has(Field::expect)) header_.expect = event.text(Field::expect);
  header_.n_ranks = static_cast<std::size_t>(event.integer(Field::ranks).value_or(0));
  const std::string_view missing = event.text(Field::not_recorded);
  header_.storages_have_lifetimes = missing.find("\"storage_alloc\"") == std::string_view::npos &&
                                    missing.find("\"storage_free\"") == std::string_view::npos;
  header_.has_a_caller = header_.producer.empty() || header_.producer == "recorder";
  const bool names_a_framework =
      event.has(Field::torch) || event.has(Field::framework) || event.has(Field::ts_ns);
  header_.is_a_recording = header_.has_a_caller && (!header_.producer.empty() || names_a_framework);
}

std::optional<SessionKey> Facts::session_of(const EventView& event) const {
  if (const auto session = event.session(Field::gid))
    return SessionKey::of(*session, event.trace());
  if (const auto task = event.integer(Field::graph_task); task && *task >= 0)
    return SessionKey::of_graph_task(*task);
  if (replay_) return replay_->session;
  return std::nullopt;
}

std::optional<StorageId> Facts::storage_of(const TensorView& tensor) const {
  if (tensor.storage) return storages_.find(*tensor.storage);
  if (tensor.tensor) return storages_.of_tensor(*tensor.tensor);
  return std::nullopt;
}

std::optional<StorageId> Facts::listed_storage(const EventView& event, Field list,
                                               std::size_t index) const {
  if (event.lists_tensors(list)) return storage_of(event.tensor_item(list, index));
  return storages_.of_tensor(event.list_item(list, index));
}

KeptTensor Facts::kept(const TensorView& tensor) const {
  KeptTensor kept;
  kept.storage = storage_of(tensor);
  kept.tensor = tensor.tensor;
  kept.layout = tensor.layout;
  kept.recorded_version = tensor.version;
  if (kept.storage) {
    kept.version = storages_.version(*kept.storage);
    if (const LiveStorage* live = storages_.live(*kept.storage)) {
      kept.maker = live->maker;
      if (live->born_version) kept.writes = kept.version - *live->born_version;
    }
  }
  kept.value = tensor.value;
  return kept;
}

bool Facts::made_by(const Body& body, StorageId storage) const {
  const LiveStorage* live = storages_.live(storage);
  if (live == nullptr) return false;
  return body.scoped ? live->born_seq >= body.begin_seq : live->made_by_frame == body.frame;
}

bool Facts::is_a_slot_of_the_caller(StorageId storage) const {
  return std::find(packed_inputs_.begin(), packed_inputs_.end(), storage) != packed_inputs_.end();
}

std::int64_t Facts::asked_seq() const {
  const Slot* asked = slot();
  const Request* open = asked == nullptr ? nullptr : asked->open_request(session_);
  return open == nullptr ? event_->seq() : open->seq;
}

std::optional<std::int64_t> Facts::enclosing_frame() const {
  const std::vector<Scope>& scopes = scopes_.stack(*event_);
  if (scopes.empty() || scopes.back().frame == no_frame) return std::nullopt;
  return scopes.back().frame;
}

bool Facts::retains(SessionKey session) const {
  return retains_.contains(session.bits());
}

void Facts::describe(const TensorView& tensor) {
  if (!tensor.storage) return;
  const StorageId storage = storages_.at(*tensor.storage);
  if (tensor.tensor) storages_.lies_on(*tensor.tensor, storage);
  if (storages_.live(storage) != nullptr || storages_.is_released(storage)) return;
  // Seen without having been allocated: it was there before the trace began.
  const Layout& layout = event_->trace().layout(tensor.layout);
  storages_.allocate(storage, layout.bytes.value_or(0), event_->seq());
  storages_.set_name(storage, tensor.name);
  storages_.set_role(storage, Role::external);
}

/// All tensors that the event shows, but an op's outputs: those may bring a storage to life.
void Facts::describe_tensors(const EventView& event) {
  for (const Field list : {Field::reads, Field::tensors, Field::inputs}) {
    if (event.lists_tensors(list)) {
      for (std::size_t i = 0; i < event.list_size(list); ++i)
        describe(event.tensor_item(list, i));
    }
  }
  if (const auto tensor = event.tensor(Field::tensor)) describe(*tensor);
  if (event.kind() == Kind::tensor) {
    TensorView shown{.tensor = event.integer(Field::t),
                     .storage = event.integer(Field::s),
                     .version = {},
                     .name = event.name(Field::name),
                     .value = {},
                     .extra = {},
                     .layout = LayoutId(0)};
    if (!shown.storage) return;
    const StorageId storage = storages_.at(*shown.storage);
    if (shown.tensor) storages_.lies_on(*shown.tensor, storage);
    if (storages_.live(storage) != nullptr || storages_.is_released(storage)) return;
    storages_.allocate(storage, event.integer(Field::bytes).value_or(0), event.seq());
    storages_.set_name(storage, shown.name);
    storages_.set_role(storage, Role::external);
  }
  if (event.kind() == Kind::role) {
    if (const auto number = event.integer(Field::storage)) {
      const StorageId storage = storages_.at(*number);
      if (storages_.live(storage) == nullptr && !storages_.is_released(storage))
        storages_.allocate(storage, 0, event.seq());
      storages_.set_name(storage, event.name(Field::name));
    }
  }
}

void Facts::add_read(std::optional<StorageId> storage, std::optional<std::int64_t> tensor,
                     ReadKind kind) {
  if (!storage) return;
  for (const Read& read : reads_)
    if (read.storage == *storage) return;
  reads_.push_back({*storage, tensor, kind});
}

void Facts::add_read(const TensorView& tensor, ReadKind kind) {
  add_read(storage_of(tensor), tensor.tensor, kind);
}

void Facts::add_listed(const EventView& event, Field list, ReadKind kind) {
  for (std::size_t i = 0; i < event.list_size(list); ++i) {
    if (event.lists_tensors(list)) {
      add_read(event.tensor_item(list, i), kind);
    } else {
      const std::int64_t tensor = event.list_item(list, i);
      add_read(storages_.of_tensor(tensor), tensor, kind);
    }
  }
}

void Facts::find_slot_read(const EventView& event) {
  const Slot* slot = slots_.of(event);
  if (slot == nullptr) return;
  const auto tensor = event.tensor(Field::tensor);
  const auto shown = tensor ? storage_of(*tensor) : std::nullopt;
  const Fill* fill = slot->fill_for(session_);
  const bool is_empty =
      slot->held == Held::placeholder || slot->held == Held::offloaded || slot->held == Held::slot;
  // Nothing tells what a rederived input was filled with but its read.
  if (fill == nullptr && is_empty && event.text(Field::from) != "rederived") return;
  const KeptTensor& kept = fill != nullptr ? fill->what : slot->packed;
  // Another storage than was filled in is another fault (S4), and no read of this one.
  if (kept.storage && shown && kept.storage != shown) return;
  add_read(kept.storage ? kept.storage : shown, kept.tensor, ReadKind::slot);
}

void Facts::find_kept_output_reads(const EventView& event) {
  const auto wrapper = event.name(Field::wrapper);
  if (!asked_entry_ || !asked_entry_->nth_call || !wrapper) return;
  const ForwardCall* call = excluded_calls_.forward(*frame_, *wrapper, *asked_entry_->nth_call);
  if (!call->entry->is_there()) return;
  for (const KeptOutput& output : call->entry->outputs)
    add_read(output.storage, std::nullopt, ReadKind::kept_output);
}

void Facts::find_reads(const EventView& event) {
  reads_.clear();
  switch (event.kind()) {
    case Kind::op:
      add_listed(event, Field::inputs, ReadKind::op_input);
      add_listed(event, Field::reads, ReadKind::op_input);
      break;
    case Kind::unpack:
    case Kind::unpack_error:
      find_slot_read(event);
      break;
    case Kind::repack:
    case Kind::slot_fill:
      if (const auto tensor = event.tensor(Field::tensor)) add_read(*tensor, ReadKind::fill);
      break;
    case Kind::sac_hit:
      add_listed(event, Field::tensors, ReadKind::cache_hit);
      break;
    case Kind::remat_serve:
      if (const auto tensor = event.tensor(Field::tensor)) add_read(*tensor, ReadKind::served);
      break;
    case Kind::inputs_unpack:
      add_listed(event, Field::tensors, ReadKind::region_input);
      break;
    case Kind::cache_pop:
      find_kept_output_reads(event);
      break;
    default:
      break;  // no other kind reads a storage
  }
}

bool Facts::is_read(StorageId storage) const {
  return std::any_of(reads_.begin(), reads_.end(),
                     [&](const Read& read) { return read.storage == storage; });
}

void Facts::find_births(const EventView& event) {
  births_.clear();
  if (event.kind() == Kind::storage_alloc) {
    if (const auto number = event.integer(Field::storage)) {
      const StorageId storage = storages_.at(*number);
      if (storages_.live(storage) == nullptr)
        births_.push_back({storage, event.integer(Field::bytes).value_or(0)});
    }
  }
  if (event.kind() != Kind::op) return;
  for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i) {
    const TensorView output = event.tensor_item(Field::outputs, i);
    if (!output.storage) continue;
    const StorageId storage = storages_.at(*output.storage);
    if (storages_.live(storage) != nullptr) continue;
    // U4: a view adds nothing. One of a dead storage is a read of it (U1), it does not bring it
    // back.
    if (storages_.is_released(storage) && is_read(storage)) continue;
    const auto same = [&](const Birth& birth) { return birth.storage == storage; };
    if (std::any_of(births_.begin(), births_.end(), same)) continue;
    births_.push_back({storage, event.trace().layout(output.layout).bytes.value_or(0)});
  }
}

std::optional<std::int64_t> Facts::excluded_frame(const EventView& event) {
  if (const auto frame = event.integer(Field::frame)) return frame;
  if (const auto frame = enclosing_frame()) return frame;
  return scopes_.frame_of(event);
}

void Facts::find_excluded_call(const EventView& event) {
  excluded_call_ = nullptr;
  asked_entry_.reset();
  own_replay_ = 0;
  if (!names_an_excluded_call(event.kind())) {
    if (excluded_calls_.any_open()) excluded_call_ = excluded_calls_.around(event);
    return;
  }
  frame_ = excluded_frame(event);
  const Scope* scope = frame_ ? scopes_.of_frame(event, *frame_) : nullptr;
  if (scope != nullptr && scope->replay) own_replay_ = scope->id;
  excluded_call_ = excluded_calls_.of(event, frame_);
  if (event.kind() == Kind::cache_pop && frame_)
    asked_entry_ = excluded_calls_.asked(event, *frame_, own_replay_);
}

void Facts::count_steps(const EventView& event) {
  const auto rank = event.integer(Field::rank);
  const bool is_end = event.kind() == Kind::step_end;
  ends_the_step_ = is_end;
  if (!rank) return;
  const std::int64_t ended = steps_ended_[*rank] += is_end ? 1 : 0;
  ends_the_step_ = ends_the_step_ && steps_ended_.size() >= header_.n_ranks;
  for (const auto& [other, steps] : steps_ended_)
    ends_the_step_ = ends_the_step_ && steps >= ended;
}

void Facts::begin(const EventView& event) {
  event_ = &event;
  if (event.kind() == Kind::header) read_header(event);
  describe_tensors(event);
  const Scope* replay = scopes_.replay(event);
  replay_ = replay == nullptr ? std::nullopt : std::optional(*replay);
  session_ = session_of(event);
  frame_ = names_a_frame(event.kind()) ? scopes_.frame_of(event) : std::nullopt;
  ended_scope_.reset();
  frames_gone_.clear();
  bodies_.clear();
  const bool made_by_a_hook = event.has(Field::internal);
  const bool runs_in_a_body = event.kind() == Kind::op || event.kind() == Kind::mutate ||
                              event.kind() == Kind::rng || event.kind() == Kind::side_effect ||
                              event.kind() == Kind::sac_decide || event.kind() == Kind::sac_hit ||
                              event.kind() == Kind::storage_alloc;
  if (runs_in_a_body && !made_by_a_hook) scopes_.bodies(event, bodies_);
  find_excluded_call(event);
  find_reads(event);
  find_births(event);
  if (event.kind() == Kind::unit_end) ended_scope_ = scopes_.end(event);
  if (event.kind() == Kind::frame_free && frame_) frames_gone_.push_back(*frame_);
  count_steps(event);
  if (event.kind() == Kind::step_end) frames_gone_ = scopes_.end_step(event.integer(Field::rank));
}

}  // namespace remat
