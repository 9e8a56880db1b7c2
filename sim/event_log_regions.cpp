#include "sim/event_log.hpp"

// What regions, their frames and their slots tell.

namespace remat {

void EventLog::pack(std::string_view slot, std::optional<std::int64_t> frame,
                    std::optional<std::int64_t> index, std::string_view role, bool placeholder,
                    const ShownTensor& tensor, bool boundary) {
  if (!begin()) return;
  trace_->add_name(Field::slot, slot);
  add_optional(Field::frame, frame);
  add_optional(Field::idx, index);
  trace_->add_name(Field::role, role);
  trace_->add_name(Field::held, placeholder ? "placeholder" : "saved");
  add_tensor(tensor);
  if (boundary) trace_->add(Field::boundary, true);
  add_unit();
  end(Kind::pack);
}

void EventLog::repack(std::int64_t frame, std::int64_t index, std::int64_t of, const ReplayKey& key,
                      bool holder_alive, const ShownTensor& tensor, bool boundary) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add(Field::idx, index);
  trace_->add(Field::of, of);
  add_key(key);
  trace_->add(Field::holder_alive, holder_alive);
  add_tensor(tensor);
  if (boundary) trace_->add(Field::boundary, true);
  end(Kind::repack);
}

void EventLog::unpack_begin(std::string_view slot, std::optional<std::int64_t> frame,
                            std::optional<ReplayKey> key) {
  if (!begin()) return;
  trace_->add_name(Field::slot, slot);
  add_optional(Field::frame, frame);
  add_key(key);
  add_optional(Field::graph_task, graph_task_);
  end(Kind::unpack_begin);
}

void EventLog::unpack(std::string_view slot, std::optional<std::int64_t> frame,
                      std::optional<ReplayKey> key, std::string_view from,
                      const ShownTensor& tensor) {
  if (!begin()) return;
  trace_->add_name(Field::slot, slot);
  add_optional(Field::frame, frame);
  add_key(key);
  trace_->add_name(Field::from, from);
  add_tensor(tensor);
  add_optional(Field::graph_task, graph_task_);
  end(Kind::unpack);
}

void EventLog::unpack_error(std::string_view slot, std::optional<std::int64_t> frame,
                            std::optional<ReplayKey> key, std::string_view code,
                            std::string_view type) {
  if (!begin()) return;
  trace_->add_name(Field::slot, slot);
  add_optional(Field::frame, frame);
  add_key(key);
  trace_->add_name(Field::code, code);
  trace_->add_name(Field::type, type);
  end(Kind::unpack_error);
}

void EventLog::holder_free(std::string_view slot, std::optional<std::int64_t> frame) {
  if (!begin()) return;
  trace_->add_name(Field::slot, slot);
  add_optional(Field::frame, frame);
  end(Kind::holder_free);
}

void EventLog::frame_create(std::int64_t frame, bool early_stop) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add(Field::early_stop, early_stop);
  add_unit();
  end(Kind::frame_create);
}

void EventLog::frame_free(std::int64_t frame) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  end(Kind::frame_free);
}

void EventLog::inputs_save(std::int64_t frame, std::span<const std::int64_t> tensors,
                           std::int64_t n_hidden) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_list(Field::tensors, tensors);
  trace_->add(Field::n_nontensor, n_hidden);
  end(Kind::inputs_save);
}

void EventLog::inputs_unpack_begin(std::int64_t frame) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  end(Kind::inputs_unpack_begin);
}

void EventLog::inputs_unpack(std::int64_t frame, std::span<const std::int64_t> tensors) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_list(Field::tensors, tensors);
  end(Kind::inputs_unpack);
}

void EventLog::unit_begin(std::optional<std::int64_t> frame, bool replay, bool checkpointed,
                          bool reentrant, std::optional<ReplayKey> key, std::string_view owner) {
  if (!begin()) return;
  add_optional(Field::frame, frame);
  trace_->add_name(Field::exec, replay ? "replay" : "forward");
  if (!replay) trace_->add(Field::checkpointed, checkpointed);
  if (reentrant) trace_->add(Field::reentrant, true);
  add_key(key);
  add_optional(Field::graph_task, graph_task_);
  if (!owner.empty()) trace_->add_name(Field::owner, owner);
  add_unit();
  end(Kind::unit_begin);
}

void EventLog::unit_end(std::optional<std::int64_t> frame, bool replay, bool checkpointed,
                        bool reentrant, std::string_view ended_by) {
  if (!begin()) return;
  add_optional(Field::frame, frame);
  trace_->add_name(Field::exec, replay ? "replay" : "forward");
  if (!replay) trace_->add(Field::checkpointed, checkpointed);
  if (reentrant) trace_->add(Field::reentrant, true);
  trace_->add_name(Field::ended_by, ended_by);
  add_unit();
  end(Kind::unit_end);
}

void EventLog::body_begin(std::int64_t frame, bool replay) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_name(Field::exec, replay ? "replay" : "forward");
  add_unit();
  end(Kind::body_begin);
}

void EventLog::early_stop(std::int64_t frame, const ReplayKey& key, std::int64_t after,
                          std::int64_t of) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  add_key(key);
  trace_->add(Field::after_packs, after);
  trace_->add(Field::of, of);
  add_unit();
  end(Kind::early_stop);
}

void EventLog::determinism_check(std::int64_t frame, bool ok, std::int64_t n_forward,
                                 std::int64_t n_replay) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add(Field::ok, ok);
  trace_->add(Field::n_forward, n_forward);
  trace_->add(Field::n_replay, n_replay);
  end(Kind::determinism_check);
}

void EventLog::sac_decide(std::int64_t frame, std::string_view op, std::int64_t index, bool saved,
                          std::span<const std::int64_t> tensors) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_name(Field::op, op);
  trace_->add(Field::idx, index);
  trace_->add(Field::saved, saved);
  trace_->add_list(Field::tensors, tensors);
  add_unit();
  end(Kind::sac_decide);
}

void EventLog::sac_hit(std::int64_t frame, std::string_view op, std::int64_t index,
                       std::span<const std::int64_t> tensors) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_name(Field::op, op);
  trace_->add(Field::idx, index);
  trace_->add_list(Field::tensors, tensors);
  add_unit();
  end(Kind::sac_hit);
}

void EventLog::mark(std::string_view name) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  end(Kind::mark);
}

void EventLog::warning(const Diagnosis& diagnosis, std::string_view message) {
  if (!begin()) return;
  trace_->add_name(Field::code, diagnosis.code);
  trace_->add_name(Field::owner, diagnosis.owner);
  trace_->add_name(Field::unit, diagnosis.unit);
  if (!diagnosis.op.empty()) trace_->add_name(Field::op, diagnosis.op);
  trace_->add_text(Field::message, message);
  end(Kind::warning);
}

}  // namespace remat
