#include "properties/random_trace.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "traces/json_text.hpp"

namespace remat {
namespace {

constexpr std::size_t events_max = 100;

/// Spellings that a careless writer would get wrong stand behind the plain ones.
constexpr std::array<std::string_view, 10> spellings = {"a",
                                                        "b",
                                                        "c",
                                                        "d",
                                                        "",
                                                        "\"quoted\"",
                                                        "back\\slash",
                                                        "line\nend\x01",
                                                        "\xc3\xa9\xf0\x9f\x98\x80",
                                                        std::string_view("zero\0byte", 9)};
constexpr std::array<std::string_view, 3> unknown_kinds = {"telepathy", "", "unknown"};
constexpr std::array<std::string_view, 6> unknown_fields = {"mood",  "",          "a/b~c",
                                                            "tab\t", "direction", "leaf"};
constexpr std::array<std::string_view, 10> json_scalars = {"null",
                                                           "true",
                                                           "false",
                                                           "0",
                                                           "-0",
                                                           "1.50",
                                                           "1e400",
                                                           "\"\"",
                                                           "\"\\u00e9\\ud83d\\ude00\"",
                                                           "18446744073709551616"};

/// What an id in a field must have been described as, before.
enum class Pool { none, tensors, storages, slots, frames };

struct Reference {
  Kind kind;
  Field field;
  Pool pool;
};

constexpr Reference references[] = {
    {Kind::op, Field::inputs, Pool::tensors},
    {Kind::op_error, Field::inputs, Pool::tensors},
    {Kind::inputs_save, Field::tensors, Pool::tensors},
    {Kind::inputs_unpack, Field::tensors, Pool::tensors},
    {Kind::sac_decide, Field::tensors, Pool::tensors},
    {Kind::cache_pop, Field::tensors, Pool::tensors},
    {Kind::storage_free, Field::storage, Pool::storages},
    {Kind::mutate, Field::storage, Pool::storages},
    {Kind::unpack_begin, Field::slot, Pool::slots},
    {Kind::unpack, Field::slot, Pool::slots},
    {Kind::holder_free, Field::slot, Pool::slots},
    {Kind::frame_free, Field::frame, Pool::frames},
    {Kind::inputs_unpack_begin, Field::frame, Pool::frames},
};

Pool pool_of(Kind kind, Field field) {
  for (const Reference& reference : references)
    if (reference.kind == kind && reference.field == field) return reference.pool;
  return Pool::none;
}

class RandomTrace {
 public:
  explicit RandomTrace(ChoiceTape& tape) : tape_(tape) {}

  Trace trace() {
    add_header();
    while (trace_.size() < events_max && tape_.choose(32) != 0)
      add_event();
    return std::move(trace_);
  }

 private:
  void add_header() {
    trace_.begin_event();
    trace_.add_name(Field::format, "ckpt-trace");
    trace_.add(Field::version, std::int64_t{1});
    add_fields(Kind::header);
    add_unknown_fields(Kind::header);
    trace_.end_event(Kind::header, phase(), 0);
  }

  void add_event() {
    const std::span<const KindRow> rows = kind_rows().subspan(1);  // behind the header
    const std::size_t choice = tape_.choose(rows.size() + 1);
    seq_ += static_cast<std::int64_t>(1 + (tape_.choose(8) == 7 ? tape_.bits() >> 8U : 0));
    const Kind kind = choice < rows.size() ? rows[choice].kind : Kind::unknown;
    trace_.begin_event();
    add_fields(kind);
    add_unknown_fields(kind);
    if (kind == Kind::unknown) {
      trace_.end_unknown_event(unknown_kinds[tape_.choose(unknown_kinds.size())], phase(), seq_);
    } else {
      trace_.end_event(kind, phase(), seq_);
    }
    describe(trace_[trace_.size() - 1]);
  }

  Phase phase() {
    return phase_is_null_ ? Phase::none : static_cast<Phase>(tape_.choose(phase_count));
  }

  void add_fields(Kind kind) {
    std::vector<FieldRow> rows(context_fields().begin(), context_fields().end());
    if (kind != Kind::unknown) {
      const auto own = kind_rows()[static_cast<std::size_t>(kind) - 1].fields;
      rows.insert(rows.end(), own.begin(), own.end());
    }
    phase_is_null_ = false;
    for (const FieldRow& row : rows) {
      if (row.field == Field::seq || row.field == Field::kind) continue;
      if (row.field == Field::format || (kind == Kind::header && row.field == Field::version))
        continue;
      const std::uint64_t choice = tape_.choose(4);  // absent, absent, null or a value
      if (choice < 2) continue;
      if (row.field == Field::phase) phase_is_null_ = choice == 2;
      if (choice == 2) {
        trace_.add_null(row.field);
      } else if (row.field != Field::phase) {
        add_value(row, pool_of(kind, row.field));
      }
    }
  }

  void add_unknown_fields(Kind kind) {
    for (const std::string_view name : unknown_fields) {
      const auto field = field_named(name);
      if (tape_.choose(8) == 7 && !(field && field_type(kind, *field)))
        trace_.add_unknown(name, json());
    }
  }

  void add_value(const FieldRow& row, Pool pool) {
    switch (row.type) {
      case FieldType::integer:
        trace_.add(row.field, integer());
        break;
      case FieldType::count:
        add_count(row.field, pool);
        break;
      case FieldType::boolean:
        trace_.add(row.field, tape_.choose(2) == 1);
        break;
      case FieldType::name:
        add_name(row.field, pool);
        break;
      case FieldType::text:
        trace_.add_text(row.field, spelling());
        break;
      case FieldType::integers:
        trace_.add_list(row.field, pool == Pool::tensors ? described_tensors() : integers());
        break;
      case FieldType::tensor:
        trace_.add_tensor(row.field, tensor());
        break;
      case FieldType::tensors:
        trace_.add_tensors(row.field, tensors());
        break;
      case FieldType::ids_or_tensors:
        add_ids_or_tensors(row.field, pool);
        break;
      case FieldType::session:
        trace_.add_session(row.field, session());
        break;
      case FieldType::node:
        trace_.add_node(row.field, node());
        break;
      case FieldType::json:
        add_json(row.field);
        break;
    }
  }

  void add_json(Field field) {
    const std::string text = json();
    if (text == "null") return trace_.add_null(field);
    trace_.add_text(field, text);
  }

  void add_count(Field field, Pool pool) {
    if (pool == Pool::none) return trace_.add(field, count());
    const std::vector<std::int64_t>& ids = pool == Pool::storages ? storages_ : frames_;
    if (ids.empty()) return trace_.add_null(field);
    trace_.add(field, ids[tape_.choose(ids.size())]);
  }

  void add_name(Field field, Pool pool) {
    if (pool == Pool::none) return trace_.add_name(field, spelling());
    if (slots_.empty()) return trace_.add_null(field);
    trace_.add_name(field, slots_[tape_.choose(slots_.size())]);
  }

  void add_ids_or_tensors(Field field, Pool pool) {
    const std::vector<TensorView> objects = tensors();
    if (!objects.empty()) return trace_.add_tensors(field, objects);
    trace_.add_list(field, pool == Pool::tensors ? described_tensors() : counts());
  }

  std::int64_t integer() {
    const std::uint64_t choice = tape_.choose(32);
    if (choice == 31) return std::numeric_limits<std::int64_t>::min();
    if (choice == 30) return static_cast<std::int64_t>(tape_.bits());
    if (choice >= 24) return -static_cast<std::int64_t>(choice);
    return count();
  }

  std::int64_t count() {
    constexpr std::int64_t past_32_bits = std::int64_t{1} << 31U;
    const std::uint64_t choice = tape_.choose(32);
    if (choice == 31) return std::numeric_limits<std::int64_t>::max();
    if (choice == 30) return past_32_bits + static_cast<std::int64_t>(tape_.choose(4)) - 2;
    return static_cast<std::int64_t>(choice);
  }

  std::vector<std::int64_t> counts() {
    std::vector<std::int64_t> list(tape_.choose(4));
    for (std::int64_t& item : list)
      item = count();
    return list;
  }

  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list(tape_.choose(4));
    for (std::int64_t& item : list)
      item = integer();
    return list;
  }

  std::vector<std::int64_t> described_tensors() {
    std::vector<std::int64_t> list(tensors_.empty() ? 0 : tape_.choose(4));
    for (std::int64_t& item : list)
      item = tensors_[tape_.choose(tensors_.size())];
    return list;
  }

  std::string_view spelling() { return spellings[tape_.choose(spellings.size())]; }

  /// The text of a JSON value; white space in it is part of what is kept.
  std::string json(int depth = 0) {
    constexpr int depth_max = 3;
    const std::uint64_t choice = tape_.choose(depth < depth_max ? 14 : 11);
    if (choice < json_scalars.size()) return std::string(json_scalars[choice]);
    std::string text;
    if (choice == json_scalars.size()) {
      append_json_string(spelling(), text);
      return text;
    }
    const bool object = choice % 2 == 0;
    const std::uint64_t n = tape_.choose(4);
    text = object ? "{" : "[ ";
    for (std::uint64_t i = 0; i < n; ++i) {
      if (i > 0) text += ", ";
      if (object) append_json_string(spelling(), text);
      if (object) text += " : ";
      text += json(depth + 1);
    }
    return text + (object ? "}" : "]");
  }

  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  NameId name() { return trace_.names().intern(spelling()); }

  TensorView tensor() {
    constexpr std::uint64_t version_end = std::uint64_t{1} << 32U;
    Layout layout;
    TensorView view{.tensor = {},
                    .storage = {},
                    .version = {},
                    .name = {},
                    .value = {},
                    .extra = {},
                    .layout = LayoutId(0)};
    if (flip()) view.tensor = count();
    if (flip()) view.storage = count();
    if (flip()) view.version = static_cast<std::int64_t>(tape_.bits() % version_end);
    if (flip()) view.name = name();
    if (flip()) view.value = kept(json());
    if (flip()) view.extra = kept("\"odd\":" + json() + (flip() ? ",\"\":" + json() : ""));
    layout.has_shape = flip();
    layout.has_stride = flip();
    if (layout.has_shape) layout.shape = integers();
    if (layout.has_stride) layout.stride = integers();
    if (flip()) layout.dtype = name();
    if (flip()) layout.device = name();
    if (flip()) layout.offset = count();
    if (flip()) layout.bytes = count();
    view.layout = trace_.intern(layout);
    return view;
  }

  std::vector<TensorView> tensors() {
    std::vector<TensorView> list;
    for (std::uint64_t n = tape_.choose(3); n > 0; --n)
      list.push_back(tensor());
    return list;
  }

  SessionName session() {
    SessionName session{name(), {}, {}};
    if (flip()) {
      session.name = name();
    } else {
      session.number = integer();
    }
    return session;
  }

  NodeName node() {
    NodeName node{name(), {}};
    if (flip()) node.number = tape_.bits();
    return node;
  }

  bool flip() { return tape_.choose(2) == 1; }

  /// Remembers what later events may refer to.
  void describe(const EventView& event) {
    for (const Field field : {Field::outputs, Field::reads, Field::tensors, Field::inputs}) {
      if (event.lists_tensors(field)) {
        for (std::size_t i = 0; i < event.list_size(field); ++i)
          describe(event.tensor_item(field, i));
      }
    }
    if (const auto tensor = event.tensor(Field::tensor)) describe(*tensor);
    const auto storage = event.integer(Field::storage);
    if (storage && (event.kind() == Kind::storage_alloc || event.kind() == Kind::role))
      storages_.push_back(*storage);
    if (event.kind() == Kind::pack && event.has(Field::slot))
      slots_.emplace_back(event.text(Field::slot));
    const auto frame = event.integer(Field::frame);
    if (frame && (event.kind() == Kind::frame_create || event.kind() == Kind::unit_begin))
      frames_.push_back(*frame);
  }

  void describe(const TensorView& tensor) {
    if (tensor.tensor) tensors_.push_back(*tensor.tensor);
    if (tensor.storage) storages_.push_back(*tensor.storage);
  }

  ChoiceTape& tape_;
  Trace trace_;
  std::int64_t seq_ = 0;
  bool phase_is_null_ = false;
  std::deque<std::string> texts_;  // what the tensor views point to
  std::vector<std::int64_t> tensors_;
  std::vector<std::int64_t> storages_;
  std::vector<std::string> slots_;
  std::vector<std::int64_t> frames_;
};

}  // namespace

Trace random_trace(ChoiceTape& tape) {
  return RandomTrace(tape).trace();
}

}  // namespace remat
