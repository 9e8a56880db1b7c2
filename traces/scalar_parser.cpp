#include "traces/scalar_parser.hpp"

#include <fmt/format.h>

#include <charconv>

#include "traces/json_text.hpp"
#include "traces/line_error.hpp"
#include "traces/shown.hpp"

namespace remat {
namespace {

std::string_view kind_of_value(ScalarParser::Type type) {
  using Type = ScalarParser::Type;
  switch (type) {
    case Type::array:
      return "a list";
    case Type::object:
      return "an object";
    case Type::number:
      return "a number";
    case Type::string:
      return "a string";
    case Type::boolean:
      return "a boolean";
    case Type::null:
      return "null";
  }
  return "something else";
}

/// The value's own text, up to where the next begins.
std::string_view token_of(ScalarParser::Value value) {
  return trimmed(value.raw_json_token());
}

/// `01` and `-01`, which are no JSON.
bool has_leading_zero(std::string_view digits) {
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return digits.size() > 1 && digits.front() == '0';
}

template <typename Number>
struct Parsed {
  Number number = 0;
  bool whole = false;  // the token is this number
  bool too_large = false;
};

template <typename Number>
Parsed<Number> parsed(std::string_view token) {
  Parsed<Number> result;
  const char* const token_end = token.data() + token.size();
  const auto [end, error] = std::from_chars(token.data(), token_end, result.number);
  const bool read_all = end == token_end && !has_leading_zero(token);
  result.whole = read_all && error == std::errc{};
  result.too_large = read_all && error == std::errc::result_out_of_range;
  return result;
}

}  // namespace

void ScalarParser::begin_line(std::string_view line) {
  has_escapes_ = line.find('\\') != std::string_view::npos;
  place = {};
}

void ScalarParser::fail(const std::string& what) const {
  throw LineError(fmt::format("{} (at {})", what, place.pointer()));
}

void ScalarParser::wrong_type(FieldType expected, Value value) const {
  const Type type = type_of(value);
  const std::string_view token = token_of(value);
  std::string found(kind_of_value(type));
  if (type == Type::number && is_json_number(token)) {
    found += fmt::format(" ({})", shown(token));
  } else if (type == Type::number) {
    found = shown(token) + ", which is no JSON";
  }
  fail(fmt::format("{} is {}; expected {}", place.subject(), found, expectation(expected)));
}

/// true, false and null must be spelled out; what begins like no value is none.
ScalarParser::Type ScalarParser::type_of_word(Value value) const {
  const std::string_view token = token_of(value);
  if (token == "null") return Type::null;
  if (token == "true" || token == "false") return Type::boolean;
  if (!token.empty() && std::string_view(",:]}").find(token.front()) != std::string_view::npos)
    fail(fmt::format("{} has no value; expected one", place.subject()));
  fail(fmt::format("{} is {}; expected a JSON value", place.subject(), shown(token)));
}

/// Most numbers are short and not negative; whatever else stands here takes the longer way.
std::optional<std::int64_t> ScalarParser::short_number(std::string_view token) {
  constexpr std::size_t digits_max = 18;  // fewer than 64 bits hold
  if (token.empty() || token.size() > digits_max || (token.front() == '0' && token.size() > 1))
    return std::nullopt;
  std::int64_t number = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::int64_t ScalarParser::integer(Value value, FieldType type) const {
  if (const auto number = short_number(token_of(value))) return *number;
  if (type_of(value) != Type::number) wrong_type(type, value);
  const std::string_view token = token_of(value);
  const auto [number, whole, too_large] = parsed<std::int64_t>(token);
  if (too_large) {
    fail(fmt::format("{} is out of range: {}; expected a 64-bit integer", place.subject(),
                     shown(token)));
  }
  if (!whole) wrong_type(type, value);
  if (type == FieldType::count && number < 0) {
    fail(
        fmt::format("{} is negative: {}; expected {}", place.subject(), number, expectation(type)));
  }
  return number;
}

std::uint64_t ScalarParser::unsigned_integer(Value value) const {
  if (type_of(value) != Type::number) wrong_type(FieldType::count, value);
  const std::string_view token = token_of(value);
  const auto [number, whole, too_large] = parsed<std::uint64_t>(token);
  if (too_large) {
    fail(fmt::format("{} is out of range: {}; expected an unsigned 64-bit integer", place.subject(),
                     shown(token)));
  }
  if (!whole) wrong_type(FieldType::count, value);
  return number;
}

bool ScalarParser::boolean(Value value) const {
  if (type_of(value) != Type::boolean) wrong_type(FieldType::boolean, value);
  return value.get_bool();
}

std::string_view ScalarParser::string(Value value, FieldType type) const {
  if (type_of(value) != Type::string) wrong_type(type, value);
  const std::string_view token = token_of(value);
  if (!has_escapes_) return token.substr(1, token.size() - 2);  // as it stands in the line
  if (const auto fault = escape_fault(token)) {
    fail(fmt::format("{} cannot be read: {}; expected {}", place.subject(), *fault,
                     expectation(type)));
  }
  return value.get_string();
}

std::string_view ScalarParser::json(Value value) const {
  std::string_view text;
  switch (type_of(value)) {
    case Type::array:
      text = trimmed(simdjson::ondemand::array(value.get_array()).raw_json());
      break;
    case Type::object:
      text = trimmed(simdjson::ondemand::object(value.get_object()).raw_json());
      break;
    default:
      text = token_of(value);
      break;
  }
  if (const auto fault = json_fault(text))
    fail(fmt::format("{} cannot be read: {}; expected a JSON value", place.subject(), *fault));
  return text;
}

std::string_view ScalarParser::escaped_name(
    simdjson::simdjson_result<simdjson::ondemand::field>& entry,
    simdjson::ondemand::raw_json_string raw) const {
  const char* const begin = raw.raw();
  std::size_t length = 0;
  while (begin[length] != '"')
    length += begin[length] == '\\' ? 2 : 1;
  if (const auto fault = escape_fault({begin, length})) {
    throw LineError(
        fmt::format("the name of a field cannot be read: {}; expected a string", *fault));
  }
  return entry.unescaped_key();
}

}  // namespace remat
