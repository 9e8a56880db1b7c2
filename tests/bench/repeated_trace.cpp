#include "tests/bench/repeated_trace.hpp"

#include <algorithm>
#include <string_view>

#include "traces/output_file.hpp"
#include "traces/reader.hpp"
#include "traces/trace.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

/// What the ids of one kind are shifted by now, and how far they will have come after this
/// recording.
struct Shift {
  std::int64_t by = 0;
  std::int64_t next = 0;
  std::int64_t operator()(std::int64_t id) {
    next = std::max(next, by + id + 1);
    return by + id;
  }
};

class Repeater {
 public:
  /// Appends the recording's events, all but a second header, as lines.
  void append(const Trace& recording, std::string& lines) {
    const std::int64_t first_seq = seq_;
    for (std::size_t i = 0; i < recording.size(); ++i) {
      if (recording[i].kind() == Kind::header && seq_ > 0) continue;
      Trace shifted;
      copy(recording[i], first_seq, shifted);
      append_json(shifted[0], lines);
    }
    for (Shift* shift : {&tensors_, &storages_, &frames_, &tasks_})
      shift->by = shift->next;
    ++round_;
  }

  std::int64_t n_events() const { return seq_; }

 private:
  void copy(const EventView& event, std::int64_t first_seq, Trace& into) {
    into.begin_event();
    for (const ShapeField& shape : event.shape().fields) {
      if (shape.key >= field_count) continue;
      copy_field(event, static_cast<Field>(shape.key), shape.cell, first_seq, into);
    }
    into.end_event(event.kind(), event.phase(), seq_++);
  }

  void copy_field(const EventView& event, Field field, Cell cell, std::int64_t first_seq,
                  Trace& into) {
    switch (cell) {
      case Cell::null:
        into.add_null(field);
        break;
      case Cell::yes:
      case Cell::no:
        into.add(field, event.is_true(field));
        break;
      case Cell::int32:
      case Cell::int64:
        into.add(field, shifted_integer(field, *event.integer(field), first_seq));
        break;
      case Cell::name:
        into.add_name(field, renamed(field, event.text(field)));
        break;
      case Cell::text:
        into.add_text(field, event.text(field));
        break;
      case Cell::list32:
      case Cell::list64:
        copy_list(event, field, into);
        break;
      case Cell::tensor:
        into.add_tensor(field, shifted_tensor(event, *event.tensor(field), into));
        break;
      case Cell::tensors:
        copy_tensors(event, field, into);
        break;
      case Cell::session:
        copy_session(event, field, into);
        break;
      case Cell::node_name:
      case Cell::node: {
        NodeName node = *event.node(field);
        node.name = into.names().intern(event.trace().names()[node.name]);
        into.add_node(field, node);
        break;
      }
    }
  }

  std::int64_t shifted_integer(Field field, std::int64_t value, std::int64_t first_seq) {
    switch (field) {
      case Field::t:
      case Field::tensor:
        return tensors_(value);
      case Field::s:
      case Field::storage:
        return storages_(value);
      case Field::frame:
        return frames_(value);
      case Field::graph_task:
        return value < 0 ? value : tasks_(value);
      case Field::op_seq:
        return first_seq + value;
      default:
        return value;
    }
  }

  // f3.1 is slot 1 of frame 3, p7 a slot outside frames; a round's own suffix keeps the others
  // apart.
  std::string renamed(Field field, std::string_view name) {
    if (field != Field::slot || round_ == 0) return std::string(name);
    return std::string(name) + "@" + std::to_string(round_);
  }

  void copy_list(const EventView& event, Field field, Trace& into) {
    std::vector<std::int64_t> items;
    for (std::size_t i = 0; i < event.list_size(field); ++i) {
      const std::int64_t item = event.list_item(field, i);
      const bool tensors =
          field == Field::inputs || field == Field::outputs || field == Field::tensors;
      items.push_back(tensors ? tensors_(item) : item);
    }
    into.add_list(field, items);
  }

  TensorView shifted_tensor(const EventView& event, TensorView tensor, Trace& into) {
    if (tensor.tensor) tensor.tensor = tensors_(*tensor.tensor);
    if (tensor.storage) tensor.storage = storages_(*tensor.storage);
    const NameTable& names = event.trace().names();
    if (tensor.name) tensor.name = into.names().intern(names[*tensor.name]);
    Layout layout = event.trace().layout(tensor.layout);
    if (layout.dtype) layout.dtype = into.names().intern(names[*layout.dtype]);
    tensor.layout = into.intern(layout);
    return tensor;
  }

  void copy_tensors(const EventView& event, Field field, Trace& into) {
    std::vector<TensorView> tensors;
    tensors.reserve(event.list_size(field));
    for (std::size_t i = 0; i < event.list_size(field); ++i)
      tensors.push_back(shifted_tensor(event, event.tensor_item(field, i), into));
    into.add_tensors(field, tensors);
  }

  void copy_session(const EventView& event, Field field, Trace& into) {
    SessionName session = event.trace().session(*event.session(field));
    const std::string_view kind = event.trace().names()[session.kind];
    session.kind = into.names().intern(kind);
    if (session.number)
      session.number = kind == "graph_task" ? tasks_(*session.number) : *session.number;
    if (session.name) {
      session.name = into.names().intern(std::string(event.trace().names()[*session.name]) + "@" +
                                         std::to_string(round_));
    }
    into.add_session(field, session);
  }

  Shift tensors_, storages_, frames_, tasks_;
  std::int64_t seq_ = 0;
  std::int64_t round_ = 0;
};

}  // namespace

std::int64_t write_repeated_trace(const std::vector<std::string>& recordings,
                                  std::int64_t bytes_min, const std::string& path) {
  std::vector<Trace> traces;
  traces.reserve(recordings.size());
  for (const std::string& recording : recordings)
    traces.push_back(read_trace(recording));
  OutputFile file(path);
  Repeater repeater;
  std::int64_t bytes = 0;
  while (bytes < bytes_min) {
    for (const Trace& trace : traces) {
      std::string lines;
      repeater.append(trace, lines);
      bytes += std::ssize(lines);
      file.write(lines);
    }
  }
  file.commit();
  return repeater.n_events();
}

}  // namespace remat
