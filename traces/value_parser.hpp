#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/scalar_parser.hpp"
#include "traces/trace.hpp"

namespace remat {

/// An event, and a tensor in it, has at most this many fields.
inline constexpr std::size_t fields_max = 100;
/// A list has at most this many tensors, so that a line of `{},{},…` does not fill the memory.
inline constexpr std::size_t tensors_max = 100000;
/// The largest version of a storage that a tensor can show: 32 bits hold it in memory.
inline constexpr std::int64_t tensor_version_max = 0xffffffff;

/// Turns the value of one field after the other into what a trace keeps.
class ValueParser : public ScalarParser {
 public:
  /// From now on values are those of `line`, an event that goes to `into`.
  void begin_event(std::string_view line, Trace& into);

  /// Adds the field's value to the event; null is kept as such, whatever the type.
  void add(Field field, FieldType type, Value value);
  /// Adds a field that the format does not know.
  void add_unknown(std::string_view name, Value value);

 private:
  void add_value(Field field, FieldType type, Value value);
  void add_ids_or_tensors(Field field, Value value);
  void add_extra(std::string_view name, Value value, std::string& extra) const;
  /// `item` says where in a list we are.
  void read_integers(Value value, std::optional<std::size_t>& item,
                     std::vector<std::int64_t>& into);
  void read_tensors(Value value);
  TensorView tensor(Value value);
  bool read_tensor_field(Field field, Value value, TensorView& into);
  SessionName session(Value value);
  NodeName node(Value value);
  void add_to_list(Value value);
  void check_pair(std::size_t length, FieldType expected) const;

  Trace* into_ = nullptr;
  std::vector<std::int64_t> integers_;
  std::vector<TensorView> tensors_;
  std::vector<std::string_view> extra_names_;
  std::deque<std::string> extras_;  // what the tensor views of one event point to
  Layout layout_;
  FieldOrder tensor_order_;
};

}  // namespace remat
