#include "sim/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace remat {
namespace {

std::string_view role_name(BufferRole role) {
  switch (role) {
    case BufferRole::none:
      return "op";
    case BufferRole::param:
      return "param";
    case BufferRole::buffer:
      return "buffer";
    case BufferRole::input:
      return "input";
    case BufferRole::external:
      return "external";
  }
  return {};
}

}  // namespace

bool EventLog::begin() {
  if (trace_ == nullptr) return false;
  trace_->begin_event();
  return true;
}

void EventLog::end(Kind kind) {
  trace_->add(Field::ts_ns, now_.ns);
  add_optional(Field::microbatch, microbatch_);
  if (rank_) trace_->add(Field::rank, std::int64_t{*rank_});
  trace_->end_event(kind, phase_, book_->seq++);
}

void EventLog::add_optional(Field field, std::optional<std::int64_t> value) {
  if (value) trace_->add(field, *value);
}

void EventLog::add_key(std::optional<ReplayKey> key) {
  if (!key) return;
  if (key->kind == ReplayKey::Kind::session) {
    const NameId name = trace_->names().intern(sessions_[static_cast<std::size_t>(key->number)]);
    const NameId kind = trace_->names().intern("session");
    trace_->add_session(Field::gid, {.kind = kind, .number = {}, .name = name});
    return;
  }
  const bool is_task = key->kind == ReplayKey::Kind::graph_task;
  const NameId kind = trace_->names().intern(is_task ? "graph_task" : "group");
  trace_->add_session(Field::gid, {.kind = kind, .number = key->number, .name = {}});
}

ReplayKey EventLog::session_key(std::string_view name) {
  auto known = std::find(sessions_.begin(), sessions_.end(), name);
  if (known == sessions_.end()) known = sessions_.insert(known, std::string(name));
  return {ReplayKey::Kind::session, known - sessions_.begin()};
}

void EventLog::session(Kind kind, const ReplayKey& key, std::optional<bool> retains) {
  if (!begin()) return;
  add_key(key);
  if (retains) trace_->add(Field::retain, *retains);
  end(kind);
}

void EventLog::add_unit() {
  if (units_.empty()) return;
  trace_->add_name(Field::unit, units_.back().unit);
  add_optional(Field::inv, units_.back().invocation);
}

LayoutId EventLog::layout_of(ValueId value) {
  if (layouts_.size() < program_->values.size()) layouts_.resize(program_->values.size());
  std::optional<LayoutId>& known = layouts_[value.index()];
  if (!known) {
    const TensorLayout& from = program_->values[value].layout;
    Layout layout;
    layout.dtype = trace_->names().intern(from.dtype);
    layout.shape = from.shape;
    layout.stride = from.stride;
    layout.has_shape = layout.has_stride = true;
    layout.offset = from.offset;
    layout.bytes = element_bytes_of(from);
    known = trace_->intern(layout);
  }
  return *known;
}

LayoutId EventLog::moved_layout(const ShownTensor& tensor) {
  Layout layout = trace_->layout(layout_of(tensor.value));
  layout.offset = layout.offset.value_or(0) + tensor.begin;
  return trace_->intern(layout);
}

TensorView EventLog::bare_view(const ShownTensor& tensor) {
  return {.tensor = tensor.id,
          .storage = tensor.storage,
          .version = tensor.version,
          .name = {},
          .value = {},
          .extra = {},
          .layout = tensor.begin == 0 ? layout_of(tensor.value) : moved_layout(tensor)};
}

TensorView EventLog::view(const ShownTensor& tensor, std::string& text) {
  text.clear();
  if (tensor.element) fmt::format_to(std::back_inserter(text), "{}", tensor.element->value());
  TensorView made = bare_view(tensor);
  made.value = text;
  return made;
}

void EventLog::add_tensor(const ShownTensor& tensor) {
  trace_->add_tensor(Field::tensor, view(tensor, text_));
}

void EventLog::header(std::string_view config_json, std::string_view expect_json,
                      std::size_t n_ranks) {
  if (!begin()) return;
  trace_->add_name(Field::format, "ckpt-trace");
  trace_->add(Field::version, std::int64_t{1});
  trace_->add_name(Field::producer, "simulator");
  trace_->add_text(Field::config, config_json);
  trace_->add_text(Field::expect, expect_json);
  if (n_ranks > 1) trace_->add(Field::ranks, static_cast<std::int64_t>(n_ranks));
  trace_->end_event(Kind::header, Phase::none, book_->seq++);
}

void EventLog::step(bool begins, std::int64_t step) {
  if (!begin()) return;
  trace_->add(Field::step, step);
  end(begins ? Kind::step_begin : Kind::step_end);
}

void EventLog::phase_border(bool begins, std::optional<bool> retain) {
  if (!begin()) return;
  if (retain) trace_->add(Field::retain, *retain);
  end(begins ? Kind::phase_begin : Kind::phase_end);
}

void EventLog::storage_alloc(std::int64_t storage, std::int64_t bytes, BufferRole role,
                             std::string_view maker) {
  if (!begin()) return;
  trace_->add(Field::storage, storage);
  trace_->add(Field::bytes, bytes);
  if (role != BufferRole::none) trace_->add_name(Field::role, role_name(role));
  trace_->add_name(Field::op, maker);
  end(Kind::storage_alloc);
}

void EventLog::storage_free(std::int64_t storage, std::int64_t bytes) {
  if (!begin()) return;
  trace_->add(Field::storage, storage);
  trace_->add(Field::bytes, bytes);
  end(Kind::storage_free);
}

void EventLog::role_of_grad(std::int64_t storage) {
  if (!begin()) return;
  trace_->add(Field::storage, storage);
  trace_->add_name(Field::role, "grad");
  end(Kind::role);
}

void EventLog::leaf(const ShownTensor& tensor) {
  if (!begin()) return;
  const ProgramValue& value = program_->values[tensor.value];
  trace_->add_name(Field::name, value.name);
  trace_->add(Field::requires_grad, value.requires_grad);
  trace_->add(Field::t, tensor.id);
  trace_->add(Field::s, tensor.storage);
  trace_->add_name(Field::dtype, value.layout.dtype);
  trace_->add_list(Field::shape, value.layout.shape);
  trace_->add_list(Field::stride, value.layout.stride);
  trace_->add(Field::off, value.layout.offset);
  end(Kind::tensor);
}

void EventLog::op(std::string_view name, std::span<const std::int64_t> inputs,
                  std::span<const ShownTensor> outputs, Duration cost, bool is_compiled) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  trace_->add_list(Field::inputs, inputs);
  views_.clear();
  texts_.resize(std::max(texts_.size(), outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    views_.push_back(view(outputs[i], texts_[i]));
  trace_->add_tensors(Field::outputs, views_);
  trace_->add(Field::dur_ns, cost.ns);
  if (is_compiled) trace_->add(Field::compiled, true);
  add_optional(Field::graph_task, graph_task_);
  add_unit();
  end(Kind::op);
}

void EventLog::hook_detach(std::string_view hook, std::int64_t from, const ShownTensor& to) {
  hook_op("aten.detach.default", hook, from, to);
}

void EventLog::boundary_view(std::int64_t from, const ShownTensor& to) {
  hook_op("aten.view.default", "boundary", from, to);
}

void EventLog::hook_op(std::string_view name, std::string_view hook, std::int64_t from,
                       const ShownTensor& to) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  trace_->add_list(Field::inputs, std::span(&from, 1));
  views_.clear();
  texts_.resize(std::max<std::size_t>(texts_.size(), 1));
  views_.push_back(view(to, texts_[0]));
  trace_->add_tensors(Field::outputs, views_);
  trace_->add_name(Field::internal, hook);
  add_optional(Field::graph_task, graph_task_);
  end(Kind::op);
}

void EventLog::backward_op(std::string_view name, std::span<const std::int64_t> inputs,
                           std::int64_t output, std::int64_t storage, std::int64_t bytes) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  trace_->add_list(Field::inputs, inputs);
  Layout layout;
  layout.bytes = bytes;
  const TensorView shown{.tensor = output,
                         .storage = storage,
                         .version = {},
                         .name = {},
                         .value = {},
                         .extra = {},
                         .layout = trace_->intern(layout)};
  trace_->add_tensors(Field::outputs, std::span(&shown, 1));
  add_optional(Field::graph_task, graph_task_);
  end(Kind::op);
}

void EventLog::mutate(std::int64_t tensor, std::int64_t storage) {
  if (!begin()) return;
  trace_->add(Field::tensor, tensor);
  trace_->add(Field::storage, storage);
  add_unit();
  end(Kind::mutate);
}

void EventLog::node_begin(std::string_view name, std::uint64_t number, bool retain) {
  if (!begin()) return;
  trace_->add_node(Field::node, {.name = trace_->names().intern(name), .number = number});
  trace_->add(Field::retain_graph, retain);
  add_optional(Field::graph_task, graph_task_);
  end(Kind::node_begin);
}

void EventLog::grad(std::string_view param, Ring value) {
  if (!begin()) return;
  trace_->add_name(Field::param, param);
  trace_->add_text(Field::value, std::to_string(value.value()));
  end(Kind::grad);
}

void EventLog::side_effect(std::string_view name) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  add_unit();
  end(Kind::side_effect);
}

void EventLog::collective(std::string_view group, std::string_view name, std::string_view tag,
                          std::int64_t n) {
  if (!begin()) return;
  trace_->add_name(Field::group, group);
  trace_->add_name(Field::name, name);
  trace_->add_name(Field::tag, tag);
  trace_->add(Field::n, n);
  add_unit();
  end(Kind::collective);
}

void EventLog::rng(std::int64_t position) {
  if (!begin()) return;
  trace_->add_name(Field::generator, "cpu");
  trace_->add_name(Field::tag, std::to_string(position));
  add_unit();
  end(Kind::rng);
}

void EventLog::rng_set(std::int64_t position) {
  if (!begin()) return;
  trace_->add_name(Field::generator, "cpu");
  trace_->add(Field::to, position);
  end(Kind::rng_set);
}

void EventLog::update(std::string_view param, std::int64_t version) {
  if (!begin()) return;
  trace_->add_name(Field::param, param);
  trace_->add(Field::version, version);
  end(Kind::update);
}

void EventLog::zero_grad() {
  if (begin()) end(Kind::zero_grad);
}

void EventLog::error(std::string_view code, std::string_view type, std::string_view message,
                     bool caught) {
  if (!begin()) return;
  trace_->add_name(Field::code, code);
  trace_->add_name(Field::type, type);
  trace_->add_text(Field::first_line, message);
  if (caught) trace_->add(Field::caught, true);
  end(Kind::error);
}

}  // namespace remat
