#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/field_order.hpp"
#include "traces/line_place.hpp"
#include "traces/vocabulary.hpp"

namespace remat {

/// Reads JSON values one by one, and says where the line is wrong. All throw LineError, which names
/// the place, or simdjson_error where the line is no JSON.
class ScalarParser {
 public:
  using Value = simdjson::ondemand::value;
  using Type = simdjson::ondemand::json_type;

  /// From now on values are those of `line`.
  void begin_line(std::string_view line);

  /// Where we are, for messages: whoever goes into a field or an item says so here.
  LinePlace place;

  Type type_of(Value value) const {
    Type type{};
    const bool known = value.type().get(type) == simdjson::SUCCESS;
    if (known && type != Type::boolean && type != Type::null) return type;
    return type_of_word(value);
  }
  /// An integer or a count.
  std::int64_t integer(Value value, FieldType type) const;
  std::uint64_t unsigned_integer(Value value) const;
  bool boolean(Value value) const;
  /// Valid until the line's document is wound back or another line is read.
  std::string_view string(Value value, FieldType type) const;
  /// The text of any value.
  std::string_view json(Value value) const;
  /// The field that stands here; `order` knows its name, which is valid as long as a string.
  std::optional<Field> field_of(simdjson::simdjson_result<simdjson::ondemand::field>& entry,
                                FieldOrder& order) const {
    const simdjson::ondemand::raw_json_string raw = entry.key();
    return has_escapes_ ? order.next(escaped_name(entry, raw)) : order.next(raw.raw());
  }

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void wrong_type(FieldType expected, Value value) const;

 private:
  Type type_of_word(Value value) const;
  static std::optional<std::int64_t> short_number(std::string_view token);
  std::string_view escaped_name(simdjson::simdjson_result<simdjson::ondemand::field>& entry,
                                simdjson::ondemand::raw_json_string raw) const;

  bool has_escapes_ = false;  // somewhere in the line: without, no escape can be wrong
};

}  // namespace remat
