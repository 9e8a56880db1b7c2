#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/reader.hpp"
#include "traces/trace.hpp"
#include "traces/value_parser.hpp"

namespace remat {

/// Turns one line of JSON into one event of a trace.
class EventParser {
 public:
  /// Appends the event on `line`, behind which `readable` bytes may be read. Throws LineError.
  void parse(std::string_view line, std::size_t readable, Trace& into, UnknownCounts& unknown);

 private:
  using Value = simdjson::ondemand::value;
  using Document = simdjson::ondemand::document;

  struct Head {
    Kind kind = Kind::unknown;
    std::string kind_name;
    Phase phase = Phase::none;
    std::int64_t seq = 0;
    bool kind_known_yet = false;
    bool has_seq = false;
  };

  void parse_line(std::string_view line, std::size_t readable);
  /// False: a field of one kind only came before `kind` did, so it cannot be read yet.
  bool parse_fields(Document& document);
  bool parse_field(std::optional<Field> field, Value value);
  void find_kind(Document& document);
  void take_kind(Value value);
  bool take_head_field(Field field, Value value);
  void check_given_once(std::optional<Field> field, std::string_view name);
  void add_unknown(std::string_view name, Value value);

  simdjson::ondemand::parser parser_;
  ValueParser values_;
  FieldOrder order_;
  Trace* into_ = nullptr;
  UnknownCounts* unknown_ = nullptr;
  Head head_;
  std::bitset<field_count> given_;
  std::vector<std::string_view> given_unknown_;
  std::size_t n_fields_ = 0;
};

}  // namespace remat
