#include "traces/event_parser.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/line_error.hpp"
#include "traces/line_fault.hpp"
#include "traces/shown.hpp"

namespace remat {

void EventParser::take_kind(Value value) {
  const std::string_view name = values_.string(value, FieldType::name);
  const std::optional<Kind> kind = kind_named(name);
  head_.kind = kind.value_or(Kind::unknown);
  if (!kind) head_.kind_name = name;
  head_.kind_known_yet = true;
}

void EventParser::find_kind(Document& document) {
  document.rewind();
  order_.begin();
  for (auto entry : simdjson::ondemand::object(document.get_object())) {
    const std::optional<Field> field = values_.field_of(entry, order_);
    values_.place.field = order_.name();
    if (field == Field::kind) return take_kind(entry.value());
  }
}

bool EventParser::take_head_field(Field field, Value value) {
  switch (field) {
    case Field::seq:
      head_.seq = values_.integer(value, FieldType::count);
      head_.has_seq = true;
      return true;
    case Field::kind:
      take_kind(value);
      order_.enter(head_.kind);
      return true;
    case Field::phase: {
      if (values_.type_of(value) == simdjson::ondemand::json_type::null) return false;
      const std::string_view name = values_.string(value, FieldType::name);
      const std::optional<Phase> phase = phase_named(name);
      if (!phase) {
        values_.fail(
            fmt::format("unknown phase '{}'; expected one of setup, forward, replay, backward, "
                        "backward_input, backward_weight, optimizer, pretrigger",
                        shown(name)));
      }
      head_.phase = *phase;
      return true;
    }
    default:
      return false;
  }
}

void EventParser::check_given_once(std::optional<Field> field, std::string_view name) {
  const bool again = field ? given_.test(static_cast<std::size_t>(*field))
                           : std::ranges::find(given_unknown_, name) != given_unknown_.end();
  if (again) values_.fail(fmt::format("{} is given twice; expected it once", shown(name)));
  if (field) {
    given_.set(static_cast<std::size_t>(*field));
  } else {
    given_unknown_.push_back(name);
  }
}

void EventParser::add_unknown(std::string_view name, Value value) {
  values_.add_unknown(name, value);
  const std::string_view kind =
      head_.kind == Kind::unknown ? std::string_view(head_.kind_name) : name_of(head_.kind);
  ++unknown_->fields[fmt::format("{}.{}", kind, name)];
}

bool EventParser::parse_field(std::optional<Field> field, Value value) {
  if (++n_fields_ > fields_max)
    throw LineError(fmt::format("the event has over {} fields; expected fewer", fields_max));
  check_given_once(field, order_.name());
  if (field && take_head_field(*field, value)) return true;
  const bool of_any_kind = field && field_type(Kind::unknown, *field);
  if (!head_.kind_known_yet && !of_any_kind) return false;
  const std::optional<FieldType> type = field ? field_type(head_.kind, *field) : std::nullopt;
  if (type) {
    values_.add(*field, *type, value);
  } else {
    add_unknown(order_.name(), value);
  }
  return true;
}

bool EventParser::parse_fields(Document& document) {
  given_.reset();
  given_unknown_.clear();
  n_fields_ = 0;
  into_->begin_event();
  order_.begin();
  for (auto entry : simdjson::ondemand::object(document.get_object())) {
    const std::optional<Field> field = values_.field_of(entry, order_);
    values_.place.field = order_.name();
    if (!parse_field(field, entry.value())) return false;
  }
  return true;
}

void EventParser::parse_line(std::string_view line, std::size_t readable) {
  Document document =
      parser_.iterate(simdjson::padded_string_view(line.data(), line.size(), readable));
  if (!parse_fields(document)) {
    find_kind(document);
    if (!head_.kind_known_yet) throw LineError("the event has no kind; expected a field \"kind\"");
    document.rewind();  // its strings begin anew, too: their buffer has room for each once
    parse_fields(document);
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    throw LineError(line_fault(line, "something follows the object", {}));
  if (!head_.kind_known_yet) throw LineError("the event has no kind; expected a field \"kind\"");
  if (!head_.has_seq)
    throw LineError("the event has no seq; expected an integer of at least 0 (at /seq)");
}

void EventParser::parse(std::string_view line, std::size_t readable, Trace& into,
                        UnknownCounts& unknown) {
  into_ = &into;
  unknown_ = &unknown;
  head_ = Head{};
  values_.begin_event(line, into);
  try {
    parse_line(line, readable);
  } catch (const simdjson::simdjson_error& error) {
    throw LineError(line_fault(line, error.what(), values_.place.pointer()));
  }
  if (head_.kind == Kind::unknown) {
    ++unknown.kinds[head_.kind_name];
    into.end_unknown_event(head_.kind_name, head_.phase, head_.seq);
  } else {
    into.end_event(head_.kind, head_.phase, head_.seq);
  }
}

}  // namespace remat
