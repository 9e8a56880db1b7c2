#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/flat_map.hpp"
#include "model/id.hpp"
#include "traces/names.hpp"
#include "traces/vocabulary.hpp"

namespace remat {

class EventView;

/// A trace holds more than its tables can: what to do instead, without the file's name.
class TraceTooLarge : public std::length_error {
 public:
  using std::length_error::length_error;
};

using LayoutId = Id<struct LayoutTag>;
using SessionId = Id<struct SessionTag>;

/// How a tensor lies in its storage. A field that was not recorded is absent; equal layouts share
/// one row.
struct Layout {
  std::optional<NameId> dtype;
  std::vector<std::int64_t> shape;   // empty where not recorded, and for a scalar
  std::vector<std::int64_t> stride;  // in elements; likewise
  bool has_shape = false;
  bool has_stride = false;
  std::optional<std::int64_t> offset;  // in elements
  std::optional<std::int64_t> bytes;
  std::optional<NameId> device;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// One tensor as an event shows it. `tensor` is the identity of a tensor object, `storage` that of
/// its bytes.
struct TensorView {
  std::optional<std::int64_t> tensor;
  std::optional<std::int64_t> storage;
  std::optional<std::int64_t> version;
  std::optional<NameId> name;
  std::string_view value;  // JSON text, empty where not recorded
  std::string_view extra;  // unknown fields, as `"key":value,…`
  LayoutId layout;
};

/// Who asked for replayed values: a graph task, a group, a session, a single read.
struct SessionName {
  NameId kind;
  std::optional<std::int64_t> number;
  std::optional<NameId> name;
  friend bool operator==(const SessionName&, const SessionName&) = default;
};

/// A backward node: its name and, where it was recorded so, its sequence number (all 64 bits are
/// used).
struct NodeName {
  NameId name;
  std::optional<std::uint64_t> number;
  friend bool operator==(const NodeName&, const NodeName&) = default;
};

/// How one value of an event lies in memory.
enum class Cell : std::uint8_t {
  null,
  yes,
  no,
  int32,
  int64,
  name,
  text,
  list32,
  list64,
  tensor,
  tensors,
  session,
  node_name,
  node
};

/// A field of a shape: which one, how its value is kept, and where its first word is. An unknown
/// field's key is `field_count` plus the id of its name; its value is kept as JSON text.
struct ShapeField {
  std::uint32_t key;
  Cell cell;
  std::uint8_t word;
};

/// What events of the same kind, phase and fields have in common, kept once.
struct EventShape {
  Kind kind = Kind::unknown;
  Phase phase = Phase::none;
  std::optional<NameId> kind_name;                // of an unknown kind
  std::vector<ShapeField> fields;                 // in the order in which they were given
  std::array<std::uint8_t, field_count> place{};  // field → its index in `fields`, or `absent`
  static constexpr std::uint8_t absent = 0xff;
};

/// A trace in memory, or a stretch of one. Events have a fixed size; their values lie in side
/// tables; names, layouts, sessions and shapes are kept once. Source of the form:
/// docs/trace-format.md.
class Trace {
 public:
  std::size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  /// Valid until the next change of the trace.
  EventView operator[](std::size_t index) const;

  NameTable& names() { return names_; }
  const NameTable& names() const { return names_; }
  const Layout& layout(LayoutId id) const { return layouts_[id]; }
  const SessionName& session(SessionId id) const { return sessions_[id]; }

  /// Drops the events, keeps names, layouts, sessions and shapes: their ids go on being valid.
  void drop_events();
  /// Gives back what the tables reserved for growing.
  void shrink_to_fit();
  /// Everything this trace occupies, in bytes.
  std::size_t bytes_in_memory() const;

  // Adding one event: begin_event, then its fields in any order (seq, kind and phase apart), then
  // end_event. An event that is not ended is forgotten by the next begin_event.
  void begin_event();
  void add_null(Field field);
  void add(Field field, bool value);
  void add(Field field, std::int64_t value);
  void add_name(Field field, std::string_view value);
  void add_text(Field field, std::string_view value);
  void add_list(Field field, std::span<const std::int64_t> values);
  void add_tensor(Field field, const TensorView& tensor);
  void add_tensors(Field field, std::span<const TensorView> tensors);
  void add_session(Field field, const SessionName& session);
  void add_node(Field field, const NodeName& node);
  void add_unknown(std::string_view name, std::string_view json);
  void end_event(Kind kind, Phase phase, std::int64_t seq);
  /// Ends an event of a kind that the vocabulary does not know.
  void end_unknown_event(std::string_view kind_name, Phase phase, std::int64_t seq);
  LayoutId intern(const Layout& layout);
  SessionId intern(const SessionName& session);

 private:
  friend class EventView;
  struct Event {
    std::int64_t seq;
    std::uint32_t shape;
    std::uint32_t first_word;
  };
  // Most tensors have an id, a storage, a layout and a version, all of them small: what else there
  // is lies aside.
  struct TensorRow {
    std::uint32_t tensor = 0;
    std::uint32_t storage = 0;
    std::uint32_t layout = 0;
    std::uint32_t version = 0;  // versions past 32 bits do not occur: each is one write
    std::uint32_t aside = 0;    // row of `tensors_aside_`, where the mask says so
    std::uint32_t mask = 0;     // which of these were recorded
  };
  struct TensorAside {
    std::int64_t tensor = 0, storage = 0;  // where 32 bits do not hold them
    std::uint32_t name = 0, value_first = 0, value_size = 0, extra_first = 0, extra_size = 0;
  };

  void push_field(std::uint32_t key, Cell cell);
  std::uint32_t keep_text(std::string_view text);
  std::uint32_t keep_tensor(const TensorView& tensor);
  TensorView tensor_at(std::uint32_t index) const;
  std::uint32_t shape_of_draft();
  void require_room() const;

  std::vector<Event> events_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> lists_;
  std::vector<TensorRow> tensors_;
  std::vector<TensorAside> tensors_aside_;
  std::vector<NodeName> nodes_;
  std::string texts_;

  NameTable names_;
  IdVector<LayoutId, Layout> layouts_;
  FlatMap<std::uint32_t> layout_index_;  // hash → row
  IdVector<SessionId, SessionName> sessions_;
  FlatMap<std::uint32_t> session_index_;
  std::vector<EventShape> shapes_;
  FlatMap<std::uint32_t> shape_index_;

  EventShape draft_;
  std::uint32_t draft_words_ = 0;
  bool drafting_ = false;
};

/// One event, looked at. Cheap to copy; valid as long as the trace is not changed.
class EventView {
 public:
  EventView(const Trace& trace, std::size_t index)
      : trace_(&trace), event_(&trace.events_[index]), shape_(&trace.shapes_[event_->shape]) {}

  std::int64_t seq() const { return event_->seq; }
  Kind kind() const { return shape_->kind; }
  std::string_view kind_name() const;
  /// The phase as recorded: rules that mean "in a replay" ask the facts, not this.
  Phase phase() const { return shape_->phase; }
  const Trace& trace() const { return *trace_; }
  const EventShape& shape() const { return *shape_; }

  /// The field stands in the event, be it null.
  bool given(Field field) const { return place(field) != EventShape::absent; }
  /// The field stands in the event and is not null.
  bool has(Field field) const { return given(field) && entry(field).cell != Cell::null; }

  // Each gives none, or an empty list or text, where the field is absent, null or of another type.
  std::optional<std::int64_t> integer(Field field) const;
  std::optional<bool> boolean(Field field) const;
  std::optional<NameId> name(Field field) const;
  /// The spelling of a name or the content of a text or JSON field.
  std::string_view text(Field field) const;
  std::optional<TensorView> tensor(Field field) const;
  std::optional<SessionId> session(Field field) const;
  std::optional<NodeName> node(Field field) const;
  bool is_true(Field field) const { return boolean(field) == true; }

  std::size_t list_size(Field field) const;
  std::int64_t list_item(Field field, std::size_t index) const;
  bool lists_tensors(Field field) const {
    return given(field) && entry(field).cell == Cell::tensors;
  }
  TensorView tensor_item(Field field, std::size_t index) const;

  /// Unknown fields: `visit(name, json)` for each, in the order given.
  template <typename Visit>
  void each_unknown(Visit visit) const {
    for (const ShapeField& field : shape_->fields) {
      if (field.key < field_count) continue;
      const NameId name(field.key - static_cast<std::uint32_t>(field_count));
      visit(trace_->names()[name], text_at(field));
    }
  }

 private:
  std::uint8_t place(Field field) const { return shape_->place[static_cast<std::size_t>(field)]; }
  const ShapeField& entry(Field field) const { return shape_->fields[place(field)]; }
  std::uint32_t word(const ShapeField& field, std::uint32_t offset = 0) const {
    return trace_->words_[event_->first_word + field.word + offset];
  }
  std::string_view text_at(const ShapeField& field) const;

  const Trace* trace_;
  const Trace::Event* event_;
  const EventShape* shape_;
};

inline EventView Trace::operator[](std::size_t index) const {
  return EventView(*this, index);
}

}  // namespace remat
