#include <fmt/format.h>

#include "sim/event_log.hpp"

// What excluded regions tell: their calls, entries, slots and boundaries.

namespace remat {

void EventLog::add_call(const ShownCall& call) {
  trace_->add(Field::frame, call.frame);
  trace_->add_name(Field::wrapper, call.wrapper);
  trace_->add(Field::call, call.call);
  add_unit();
}

void EventLog::wrapper_enter(const ShownCall& call, bool skipped, bool save_output,
                             std::span<const ShownInput> inputs) {
  if (!begin()) return;
  add_call(call);
  trace_->add_name(Field::exec, skipped ? "replay" : "forward");
  trace_->add(Field::skipped, skipped);
  trace_->add(Field::save_output, save_output);
  views_.clear();
  texts_.clear();
  texts_.reserve(inputs.size());
  for (const ShownInput& input : inputs) {
    views_.push_back(bare_view(input.tensor));
    texts_.push_back(input.origin.empty()
                         ? fmt::format(R"("path":"{}")", input.path)
                         : fmt::format(R"("path":"{}","origin":"{}")", input.path, input.origin));
    views_.back().extra = texts_.back();
  }
  trace_->add_tensors(Field::inputs, views_);
  end(Kind::wrapper_enter);
}

void EventLog::wrapper_exit(const ShownCall& call, bool skipped, std::string_view ended_by,
                            std::int64_t n_boundaries, std::span<const std::int64_t> outputs) {
  if (!begin()) return;
  add_call(call);
  trace_->add_name(Field::exec, skipped ? "replay" : "forward");
  trace_->add(Field::skipped, skipped);
  trace_->add_name(Field::ended_by, ended_by);
  trace_->add(Field::boundaries, n_boundaries);
  trace_->add_list(Field::outputs, outputs);
  end(Kind::wrapper_exit);
}

void EventLog::excluded_pack(std::string_view slot, const ShownCall& call, std::string_view path,
                             const ShownTensor& tensor) {
  if (!begin()) return;
  add_call(call);
  trace_->add_name(Field::slot, slot);
  trace_->add_name(Field::role, path.empty() ? "excl_saved" : "excl_input");
  trace_->add_name(Field::held, path.empty() ? "saved" : "slot");
  if (!path.empty()) trace_->add_text(Field::path, fmt::format(R"("{}")", path));
  add_tensor(tensor);
  end(Kind::pack);
}

void EventLog::slot_fill(std::string_view slot, const ShownCall& call, std::int64_t entry_call,
                         std::string_view path, const ShownTensor& tensor, bool refused) {
  if (!begin()) return;
  add_call(call);
  trace_->add_name(Field::slot, slot);
  trace_->add(Field::entry_call, entry_call);
  trace_->add_text(Field::path, fmt::format(R"("{}")", path));
  add_tensor(tensor);
  if (refused) trace_->add(Field::refused, true);
  end(Kind::slot_fill);
}

void EventLog::cache_put(const ShownCall& call, std::int64_t leaves, std::int64_t bindings,
                         std::span<const ShownTensor> kept, bool is_kept) {
  if (!begin()) return;
  add_call(call);
  trace_->add(Field::leaves, leaves);
  trace_->add(Field::kept, is_kept);
  trace_->add(Field::bindings, bindings);
  trace_->add(Field::used, bindings);
  views_.clear();
  for (const ShownTensor& tensor : kept)
    views_.push_back(bare_view(tensor));
  trace_->add_tensors(Field::tensors, views_);
  end(Kind::cache_put);
}

void EventLog::cache_pop(const ShownCall& call, std::optional<std::int64_t> entry_call,
                         std::int64_t leaves, bool is_kept, std::span<const std::int64_t> tensors,
                         std::int64_t left) {
  if (!begin()) return;
  add_call(call);
  trace_->add(Field::ok, entry_call.has_value());
  if (entry_call) {
    trace_->add(Field::entry_call, *entry_call);
    trace_->add(Field::leaves, leaves);
    trace_->add(Field::kept, is_kept);
    trace_->add_list(Field::tensors, tensors);
  }
  trace_->add_text(Field::left, fmt::format("{}", left));
  end(Kind::cache_pop);
}

void EventLog::cache_clear(std::int64_t frame, std::int64_t n_entries, std::string_view left_json) {
  if (!begin()) return;
  trace_->add(Field::frame, frame);
  trace_->add_text(Field::left, left_json);
  trace_->add(Field::entries, n_entries);
  add_unit();
  end(Kind::cache_clear);
}

void EventLog::boundary(const ShownCall& call, std::int64_t leaf, bool replay, std::int64_t input) {
  if (!begin()) return;
  add_call(call);
  trace_->add(Field::leaf, leaf);
  trace_->add_name(Field::exec, replay ? "replay" : "forward");
  trace_->add(Field::input, input);
  end(Kind::boundary);
}

void EventLog::placeholder(const ShownCall& call, std::int64_t leaves, const ShownTensor& tensor) {
  if (!begin()) return;
  add_call(call);
  trace_->add(Field::leaves, leaves);
  add_tensor(tensor);
  end(Kind::placeholder);
}

void EventLog::placeholder_read(const ShownCall& call, std::int64_t leaf,
                                const ShownTensor& tensor) {
  if (!begin()) return;
  add_call(call);
  trace_->add(Field::leaf, leaf);
  add_tensor(tensor);
  end(Kind::placeholder_read);
}

}  // namespace remat
