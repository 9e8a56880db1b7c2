#include "properties/invariants/facts.hpp"

#include "properties/invariants/ended_by.hpp"

// What an event leaves behind: Facts::end and its parts.

namespace remat {
namespace {

bool is_backward(Phase phase) {
  return phase == Phase::backward || phase == Phase::backward_input ||
         phase == Phase::backward_weight;
}

}  // namespace

void Facts::give_birth(const EventView& event) {
  for (const Birth& birth : births_) {
    LiveStorage& live =
        storages_.allocate(birth.storage, birth.bytes, event.seq(), event.integer(Field::rank));
    live.born_version = storages_.version(birth.storage);
    live.born_in_setup = event.phase() == Phase::setup;
    live.made_by_frame = bodies_.empty() ? no_frame : bodies_.front().frame;
    // What comes back from the host was made before.
    const bool is_made_now = !copies_.absence(birth.storage);
    if (is_made_now)
      live.maker = event.kind() == Kind::op ? event.name(Field::name) : event.name(Field::op);
    live.made_by_backward_op = live.maker && !in_replay() &&
                               (is_backward(event.phase()) || event.phase() == Phase::optimizer);
    if (event.kind() == Kind::storage_alloc)
      storages_.set_name(birth.storage, event.name(Field::name));
  }
}

void Facts::mark_held(std::optional<StorageId> storage) {
  if (!storage) return;
  if (LiveStorage* live = storages_.live(*storage)) live->held_by_slot = true;
}

void Facts::end_storage_event(const EventView& event) {
  const auto number = event.integer(Field::storage);
  if (!number) return;
  const StorageId storage = storages_.at(*number);
  switch (event.kind()) {
    case Kind::storage_free:
      storages_.release(storage, event.seq());
      break;
    case Kind::mutate:
      storages_.write(storage, event.seq());
      break;
    case Kind::role:
    case Kind::storage_alloc:
      if (event.has(Field::role)) storages_.set_role(storage, role_named(event.text(Field::role)));
      break;
    default:
      break;
  }
}

void Facts::end_op(const EventView& event) {
  for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i) {
    const TensorView output = event.tensor_item(Field::outputs, i);
    if (!output.storage) continue;
    const StorageId storage = storages_.at(*output.storage);
    if (output.tensor) storages_.lies_on(*output.tensor, storage);
    if (!storages_.name(storage)) storages_.set_name(storage, output.name);
  }
}

std::optional<ExcludedPlace> Facts::excluded_place(const EventView& event) const {
  const auto wrapper = event.name(Field::wrapper);
  const std::string_view role = event.text(Field::role);
  if (!wrapper || (role != "excl_saved" && role != "excl_input")) return std::nullopt;
  ExcludedPlace place;
  place.frame = event.has(Field::frame) ? event.integer(Field::frame) : enclosing_frame();
  place.wrapper = *wrapper;
  place.call = event.integer(Field::call);
  place.path = event.text(Field::path);
  place.handle = event.name(Field::handle);
  return place;
}

void Facts::end_pack(const EventView& event) {
  const auto name = event.name(Field::slot);
  if (!name) return;
  Slot slot;
  slot.name = *name;
  slot.held = held_named(event.text(Field::held));
  slot.role = event.name(Field::role);
  slot.index = event.integer(Field::idx);
  slot.unit = event.name(Field::unit);
  slot.invocation = event.integer(Field::inv);
  slot.microbatch = event.integer(Field::microbatch);
  slot.region = event.name(Field::region);
  slot.excluded = excluded_place(event);
  slot.is_boundary = event.is_true(Field::boundary);
  slot.is_brought = event.text(Field::role) == "remat_saved_input";
  slot.packed_seq = event.seq();
  slot.rank = event.integer(Field::rank);
  if (const auto tensor = event.tensor(Field::tensor)) slot.packed = kept(*tensor);
  mark_held(slot.packed.storage);
  if (slot.packed.storage && event.text(Field::role) != "unit_input")
    packed_inputs_.push_back(*slot.packed.storage);
  const bool of_a_region = event.text(Field::role) == "checkpointed" &&
                           (event.has(Field::idx) || !event.given(Field::frame));
  if (of_a_region && frame_) {
    slot.frame = frame_;
    Frame& frame = scopes_.create_frame(*frame_, event);
    frame.saves.push_back(*name);
    if (!slot.index) slot.index = static_cast<std::int64_t>(frame.saves.size()) - 1;
  }
  slots_.pack(std::move(slot));
}

void Facts::end_fill(const EventView& event) {
  const auto tensor = event.tensor(Field::tensor);
  if (tensor) mark_held(storage_of(*tensor));
  Slot* slot = slots_.of(event);
  if (slot == nullptr || slot->released_seq || event.is_true(Field::refused)) return;
  Fill fill;
  fill.session = session_;
  if (tensor) fill.what = kept(*tensor);
  fill.seq = event.seq();
  fill.replay_begin_seq = replay_ ? replay_->begin_seq : event.seq();
  slot->fills.push_back(std::move(fill));
}

void Facts::end_request(const EventView& event) {
  Slot* slot = slots_.of(event);
  if (slot == nullptr || slot->released_seq || slot->held == Held::saved) return;
  if (const auto tensor = event.tensor(Field::tensor)) mark_held(storage_of(*tensor));
  Request* open = slot->open_request(session_);
  if (event.kind() == Kind::unpack_begin || open == nullptr) {
    slot->requests.push_back({session_, event.seq(), event.kind() == Kind::unpack_begin, {}});
    open = &slot->requests.back();
  }
  if (event.kind() == Kind::unpack_begin) return;
  open->begun = false;
  if (event.kind() == Kind::unpack) open->retained = event.boolean(Field::retained);
}

void Facts::end_slot_event(const EventView& event) {
  switch (event.kind()) {
    case Kind::pack:
      end_pack(event);
      break;
    case Kind::repack:
    case Kind::slot_fill:
      end_fill(event);
      break;
    case Kind::unpack_begin:
    case Kind::unpack:
    case Kind::unpack_error:
      end_request(event);
      break;
    case Kind::holder_free:
      if (const auto name = event.name(Field::slot)) slots_.release(*name, event.seq());
      break;
    case Kind::session_open:
    case Kind::session_close:
      if (session_ && event.is_true(Field::retain)) {
        retains_.insert(session_->bits());
      } else if (session_) {
        retains_.erase(session_->bits());
      }
      break;
    case Kind::session_clear:
      if (session_) {
        slots_.clear_session(*session_);
        retains_.erase(session_->bits());
      }
      break;
    default:
      break;
  }
}

void Facts::end_scope_event(const EventView& event) {
  switch (event.kind()) {
    case Kind::unit_begin:
      scopes_.begin(event, session_);
      break;
    case Kind::unit_end:
      if (ended_scope_ && ended_scope_->replay && raised(event)) last_raised_ = event.seq();
      break;
    case Kind::early_stop:
      scopes_.early_stop(event);
      break;
    case Kind::frame_create:
      if (frame_) scopes_.create_frame(*frame_, event);
      packed_inputs_.clear();
      break;
    case Kind::inputs_save:
      packed_inputs_.clear();
      break;
    case Kind::frame_free:
      if (const Frame* frame = frame_ ? scopes_.frame(*frame_) : nullptr) {
        slots_.free_frame(frame->saves);
        scopes_.free_frame(*frame_);
      }
      break;
    case Kind::phase_begin:
      stopped_before_phase_ = stopped_at_;
      break;
    case Kind::error:
    case Kind::unpack_error:
      if (event.is_true(Field::caught)) {
        stopped_at_ = stopped_before_phase_;
        slots_.withdraw_requests();
      } else if (!stopped_at_) {
        stopped_at_ = event.seq();
      }
      break;
    case Kind::step_begin:
    case Kind::step_end: {
      const auto rank = event.integer(Field::rank);
      (rank ? rank_began_seq_[*rank] : all_ranks_began_seq_) = event.seq();
      // A rank's own begin or end says nothing of another that has stopped.
      if (ends_the_step_ || (event.kind() == Kind::step_begin && !rank)) {
        stopped_at_.reset();
        stopped_before_phase_.reset();
      }
      break;
    }
    default:
      break;
  }
}

void Facts::put_entry(const EventView& event) {
  std::vector<KeptOutput> outputs;
  for (std::size_t i = 0; i < event.list_size(Field::tensors); ++i) {
    const auto storage = listed_storage(event, Field::tensors, i);
    if (storage) outputs.push_back({*storage, storages_.version(*storage)});
  }
  excluded_calls_.put(event, *frame_, std::move(outputs));
}

void Facts::end_excluded_event(const EventView& event) {
  switch (event.kind()) {
    case Kind::wrapper_enter: {
      const Scope* scope = frame_ ? scopes_.of_frame(event, *frame_) : nullptr;
      const bool is_replayed =
          scope != nullptr ? scope->replay : event.text(Field::exec) == "replay";
      const bool is_plain = event.text(Field::exec) == "plain";
      excluded_calls_.enter(event, is_plain ? std::nullopt : frame_, is_replayed, own_replay_);
      break;
    }
    case Kind::wrapper_exit:
      excluded_calls_.exit(event, frame_);
      break;
    case Kind::boundary:
      excluded_calls_.pass_boundary(event, frame_);
      break;
    case Kind::cache_put:
      if (frame_) put_entry(event);
      break;
    case Kind::cache_pop:
      if (asked_entry_) excluded_calls_.pop(event, *frame_, own_replay_, *asked_entry_);
      break;
    case Kind::cache_clear:
      if (frame_) excluded_calls_.clear(event, *frame_, own_replay_);
      break;
    case Kind::unit_end:
      if (ended_scope_) excluded_calls_.end_calls_since(event, ended_scope_->begin_seq);
      break;
    case Kind::early_stop:
      if (replay_) excluded_calls_.end_calls_since(event, replay_->begin_seq);
      break;
    case Kind::frame_free:
      if (frame_) excluded_calls_.free_frame(*frame_);
      break;
    case Kind::step_end:
      for (const std::int64_t frame : frames_gone_)
        excluded_calls_.free_frame(frame);
      if (ends_the_step_) excluded_calls_.end_all_calls();
      break;
    default:
      break;
  }
}

void Facts::end(const EventView& event) {
  give_birth(event);
  if (event.kind() == Kind::op) end_op(event);
  end_storage_event(event);
  if (const auto step = copy_step(event)) copies_.take(*step, event.seq());
  end_slot_event(event);
  end_excluded_event(event);
  end_scope_event(event);
}

}  // namespace remat
