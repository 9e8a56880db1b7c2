#include "traces/value_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>

#include "traces/json_text.hpp"

namespace remat {
namespace {

using simdjson::ondemand::array;
using simdjson::ondemand::object;

}  // namespace

void ValueParser::begin_event(std::string_view line, Trace& into) {
  begin_line(line);
  into_ = &into;
  extras_.clear();
}

void ValueParser::check_pair(std::size_t length, FieldType expected) const {
  if (length == 2) return;
  fail(fmt::format("{} has {} item{}; expected {}", place.name(), length, length == 1 ? "" : "s",
                   expectation(expected)));
}

void ValueParser::read_integers(Value value, std::optional<std::size_t>& item,
                                std::vector<std::int64_t>& into) {
  if (type_of(value) != Type::array) wrong_type(FieldType::integers, value);
  into.clear();
  for (auto entry : array(value.get_array())) {
    item = into.size();
    into.push_back(integer(entry.value(), FieldType::integer));
  }
  item.reset();
}

/// False where a tensor has no such field.
bool ValueParser::read_tensor_field(Field field, Value value, TensorView& into) {
  const auto name = [&] { return into_->names().intern(string(value, FieldType::name)); };
  switch (field) {
    case Field::t:
      into.tensor = integer(value, FieldType::count);
      break;
    case Field::s:
      into.storage = integer(value, FieldType::count);
      break;
    case Field::v:
      into.version = integer(value, FieldType::count);
      if (*into.version > tensor_version_max) {
        fail(fmt::format("v is out of range: {}; expected at most {}", *into.version,
                         tensor_version_max));
      }
      break;
    case Field::dtype:
      layout_.dtype = name();
      break;
    case Field::device:
      layout_.device = name();
      break;
    case Field::name:
      into.name = name();
      break;
    case Field::off:
      layout_.offset = integer(value, FieldType::count);
      break;
    case Field::bytes:
      layout_.bytes = integer(value, FieldType::count);
      break;
    case Field::shape:
      read_integers(value, place.inner_item, layout_.shape);
      layout_.has_shape = true;
      break;
    case Field::stride:
      read_integers(value, place.inner_item, layout_.stride);
      layout_.has_stride = true;
      break;
    case Field::value:
      into.value = json(value);
      break;
    default:
      return false;
  }
  return true;
}

void ValueParser::add_extra(std::string_view name, Value value, std::string& extra) const {
  if (!extra.empty()) extra += ',';
  append_json_string(name, extra);
  extra += ':';
  extra += json(value);
}

TensorView ValueParser::tensor(Value value) {
  if (type_of(value) != Type::object) wrong_type(FieldType::tensor, value);
  TensorView view{.tensor = {},
                  .storage = {},
                  .version = {},
                  .name = {},
                  .value = {},
                  .extra = {},
                  .layout = LayoutId(0)};
  layout_.dtype.reset();
  layout_.device.reset();
  layout_.offset.reset();
  layout_.bytes.reset();
  layout_.shape.clear();
  layout_.stride.clear();
  layout_.has_shape = layout_.has_stride = false;
  std::string extra;
  std::bitset<field_count> given;
  extra_names_.clear();
  std::size_t n_fields = 0;
  tensor_order_.begin();
  for (auto entry : object(value.get_object())) {
    place.inner.reset();
    if (++n_fields > fields_max)
      fail(fmt::format("a tensor has over {} fields; expected fewer", fields_max));
    const std::optional<Field> known = field_of(entry, tensor_order_);
    const std::string_view name = tensor_order_.name();
    place.inner = name;
    const bool again = known ? given.test(static_cast<std::size_t>(*known))
                             : std::ranges::find(extra_names_, name) != extra_names_.end();
    if (again) fail(fmt::format("{} is given twice; expected it once", place.name()));
    if (known) {
      given.set(static_cast<std::size_t>(*known));
    } else {
      extra_names_.push_back(name);
    }
    Value value_in = entry.value();
    if (!known || !read_tensor_field(*known, value_in, view)) add_extra(name, value_in, extra);
  }
  place.inner.reset();
  view.layout = into_->intern(layout_);
  if (!extra.empty()) view.extra = extras_.emplace_back(std::move(extra));
  return view;
}

void ValueParser::add_to_list(Value value) {
  if (tensors_.size() == tensors_max)
    fail(fmt::format("{} has over {} tensors; expected fewer", place.name(), tensors_max));
  tensors_.push_back(tensor(value));
}

void ValueParser::read_tensors(Value value) {
  if (type_of(value) != Type::array) wrong_type(FieldType::tensors, value);
  tensors_.clear();
  for (auto entry : array(value.get_array())) {
    place.item = tensors_.size();
    add_to_list(entry.value());
  }
  place.item.reset();
}

void ValueParser::add_ids_or_tensors(Field field, Value value) {
  if (type_of(value) != Type::array) wrong_type(FieldType::ids_or_tensors, value);
  integers_.clear();
  tensors_.clear();
  std::size_t index = 0;
  for (auto entry : array(value.get_array())) {
    place.item = index++;
    Value item = entry.value();
    if (type_of(item) == Type::object) {
      add_to_list(item);
    } else {
      integers_.push_back(integer(item, FieldType::count));
    }
  }
  place.item.reset();
  if (!tensors_.empty() && !integers_.empty()) {
    fail(fmt::format("{} mixes ids and objects; expected {}", place.name(),
                     expectation(FieldType::ids_or_tensors)));
  }
  if (tensors_.empty()) {
    into_->add_list(field, integers_);
  } else {
    into_->add_tensors(field, tensors_);
  }
}

SessionName ValueParser::session(Value value) {
  if (type_of(value) != Type::array) wrong_type(FieldType::session, value);
  SessionName name{NameId(0), std::nullopt, std::nullopt};
  std::size_t length = 0;
  for (auto entry : array(value.get_array())) {
    place.item = length++;
    Value item = entry.value();
    if (length == 1) {
      name.kind = into_->names().intern(string(item, FieldType::name));
    } else if (length == 2 && type_of(item) == Type::string) {
      name.name = into_->names().intern(string(item, FieldType::name));
    } else if (length == 2) {
      name.number = integer(item, FieldType::integer);
    }
  }
  place.item.reset();
  check_pair(length, FieldType::session);
  return name;
}

NodeName ValueParser::node(Value value) {
  const auto name_in = [&](Value text) {
    return into_->names().intern(string(text, FieldType::name));
  };
  if (type_of(value) == Type::string) return {name_in(value), std::nullopt};
  if (type_of(value) != Type::array) wrong_type(FieldType::node, value);
  NodeName name{NameId(0), std::nullopt};
  std::size_t length = 0;
  for (auto entry : array(value.get_array())) {
    place.item = length++;
    if (length == 1) {
      name.name = name_in(entry.value());
    } else if (length == 2) {
      name.number = unsigned_integer(entry.value());
    }
  }
  place.item.reset();
  check_pair(length, FieldType::node);
  return name;
}

void ValueParser::add_value(Field field, FieldType type, Value value) {
  switch (type) {
    case FieldType::integer:
    case FieldType::count:
      into_->add(field, integer(value, type));
      break;
    case FieldType::boolean:
      into_->add(field, boolean(value));
      break;
    case FieldType::name:
      into_->add_name(field, string(value, type));
      break;
    case FieldType::text:
      into_->add_text(field, string(value, type));
      break;
    case FieldType::integers:
      read_integers(value, place.item, integers_);
      into_->add_list(field, integers_);
      break;
    case FieldType::tensor:
      into_->add_tensor(field, tensor(value));
      break;
    case FieldType::tensors:
      read_tensors(value);
      into_->add_tensors(field, tensors_);
      break;
    case FieldType::ids_or_tensors:
      add_ids_or_tensors(field, value);
      break;
    case FieldType::session:
      into_->add_session(field, session(value));
      break;
    case FieldType::node:
      into_->add_node(field, node(value));
      break;
    case FieldType::json:
      into_->add_text(field, json(value));
      break;
  }
}

void ValueParser::add(Field field, FieldType type, Value value) {
  if (type_of(value) == Type::null) {
    into_->add_null(field);
  } else {
    add_value(field, type, value);
  }
}

void ValueParser::add_unknown(std::string_view name, Value value) {
  into_->add_unknown(name, json(value));
}

}  // namespace remat
