#include "traces/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "traces/json_text.hpp"
#include "traces/output_file.hpp"

namespace remat {
namespace {

void append_integer(std::int64_t value, std::string& to) {
  const fmt::format_int digits(value);
  to.append(digits.data(), digits.size());
}

/// Opens an object's members one after the other.
class Members {
 public:
  explicit Members(std::string& to) : to_(to) { to_ += '{'; }
  std::string& operator()(std::string_view key) {
    if (any_) to_ += ',';
    any_ = true;
    append_json_string(key, to_);
    to_ += ':';
    return to_;
  }
  void raw(std::string_view members) {
    if (members.empty()) return;
    if (any_) to_ += ',';
    any_ = true;
    to_ += members;
  }
  void close() { to_ += '}'; }

 private:
  std::string& to_;
  bool any_ = false;
};

void append_integers(const std::vector<std::int64_t>& values, std::string& to) {
  to += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ',';
    append_integer(values[i], to);
  }
  to += ']';
}

void append_tensor(const Trace& trace, const TensorView& tensor, std::string& to) {
  const Layout& layout = trace.layout(tensor.layout);
  Members member(to);
  if (tensor.tensor) append_integer(*tensor.tensor, member("t"));
  if (tensor.storage) append_integer(*tensor.storage, member("s"));
  if (layout.dtype) append_json_string(trace.names()[*layout.dtype], member("dtype"));
  if (layout.has_shape) append_integers(layout.shape, member("shape"));
  if (layout.has_stride) append_integers(layout.stride, member("stride"));
  if (layout.offset) append_integer(*layout.offset, member("off"));
  if (layout.bytes) append_integer(*layout.bytes, member("bytes"));
  if (tensor.version) append_integer(*tensor.version, member("v"));
  if (tensor.name) append_json_string(trace.names()[*tensor.name], member("name"));
  if (layout.device) append_json_string(trace.names()[*layout.device], member("device"));
  if (!tensor.value.empty()) member("value") += tensor.value;
  member.raw(tensor.extra);
  member.close();
}

void append_list(const EventView& event, Field field, std::string& to) {
  to += '[';
  for (std::size_t i = 0; i < event.list_size(field); ++i) {
    if (i > 0) to += ',';
    if (event.lists_tensors(field)) {
      append_tensor(event.trace(), event.tensor_item(field, i), to);
    } else {
      append_integer(event.list_item(field, i), to);
    }
  }
  to += ']';
}

void append_session(const EventView& event, Field field, std::string& to) {
  const NameTable& names = event.trace().names();
  const SessionName& session = event.trace().session(*event.session(field));
  to += '[';
  append_json_string(names[session.kind], to);
  to += ',';
  if (session.name) {
    append_json_string(names[*session.name], to);
  } else {
    append_integer(*session.number, to);
  }
  to += ']';
}

void append_node(const EventView& event, Field field, std::string& to) {
  const NodeName node = *event.node(field);
  const std::string_view name = event.trace().names()[node.name];
  if (!node.number) {
    append_json_string(name, to);
    return;
  }
  to += '[';
  append_json_string(name, to);
  to += fmt::format(",{}]", *node.number);
}

bool is_json(Kind kind, Field field) {
  return field_type(kind, field) == FieldType::json;
}

void append_value(const EventView& event, Field field, Cell cell, std::string& to) {
  switch (cell) {
    case Cell::null:
      to += "null";
      break;
    case Cell::yes:
      to += "true";
      break;
    case Cell::no:
      to += "false";
      break;
    case Cell::int32:
    case Cell::int64:
      append_integer(*event.integer(field), to);
      break;
    case Cell::name:
      append_json_string(event.text(field), to);
      break;
    case Cell::text:
      if (is_json(event.kind(), field)) {
        to += event.text(field);
      } else {
        append_json_string(event.text(field), to);
      }
      break;
    case Cell::list32:
    case Cell::list64:
    case Cell::tensors:
      append_list(event, field, to);
      break;
    case Cell::tensor:
      append_tensor(event.trace(), *event.tensor(field), to);
      break;
    case Cell::session:
      append_session(event, field, to);
      break;
    case Cell::node_name:
    case Cell::node:
      append_node(event, field, to);
      break;
  }
}

}  // namespace

void append_json(const EventView& event, std::string& to) {
  std::vector<ShapeField> known;
  for (const ShapeField& field : event.shape().fields)
    if (field.key < field_count) known.push_back(field);
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  Members member(to);
  append_integer(event.seq(), member("seq"));
  bool head_written = false;
  const auto write_head = [&] {
    if (head_written) return;
    head_written = true;
    if (event.phase() != Phase::none) append_json_string(name_of(event.phase()), member("phase"));
    append_json_string(event.kind_name(), member("kind"));
  };
  for (const ShapeField& shape : known) {
    const auto field = static_cast<Field>(shape.key);
    if (field > Field::phase) write_head();
    append_value(event, field, shape.cell, member(name_of(field)));
  }
  write_head();
  event.each_unknown([&](std::string_view name, std::string_view json) { member(name) += json; });
  member.close();
  to += '\n';
}

std::string json_lines(const Trace& trace) {
  std::string lines;
  for (std::size_t i = 0; i < trace.size(); ++i)
    append_json(trace[i], lines);
  return lines;
}

void write_trace(const Trace& trace, const std::string& path) {
  OutputFile file(path);
  std::string block;
  constexpr std::size_t block_bytes = 1U << 20U;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    append_json(trace[i], block);
    if (block.size() < block_bytes) continue;
    file.write(block);
    block.clear();
  }
  file.write(block);
  file.commit();
}

}  // namespace remat
