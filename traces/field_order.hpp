#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/short_text.hpp"
#include "traces/vocabulary.hpp"

namespace remat {

/// Finds fields by their names. What wrote a trace puts its fields in the same order every time, so
/// the one that followed the last field before is tried before any look-up.
class FieldOrder {
 public:
  void begin() {
    last_ = Field::seq;
    kind_ = Kind::unknown;
  }
  /// From here on the fields are those of a `kind` event.
  void enter(Kind kind) { kind_ = kind; }

  /// The field whose name is the text behind `raw`, a key's opening quote; no escapes in the line.
  std::optional<Field> next(const char* raw) {
    name_ = raw;
    const Field guess = follower();
    const std::string_view expected = name_of(guess);
    name_size_ = static_cast<std::uint32_t>(expected.size());
    if (raw[name_size_] == '"' && same_text(name(), expected)) {
      last_ = guess;
      return guess;
    }
    name_size_ = 0;
    while (raw[name_size_] != '"')
      ++name_size_;
    return learnt(field_named(name()));
  }
  /// The field of a name that needed reading.
  std::optional<Field> next(std::string_view name) {
    name_ = name.data();
    name_size_ = static_cast<std::uint32_t>(name.size());
    return learnt(field_named(name));
  }

  /// The name that `next` met last; valid as long as the text that it was given.
  std::string_view name() const { return {name_, name_size_}; }

 private:
  Field& follower() {
    return follows_[static_cast<std::size_t>(kind_)][static_cast<std::size_t>(last_)];
  }
  std::optional<Field> learnt(std::optional<Field> field) {
    if (field) {
      follower() = *field;
      last_ = *field;
    }
    return field;
  }

  const char* name_ = nullptr;
  // Not a string_view: read as one right after it was written in halves, that stalls the processor.
  std::uint32_t name_size_ = 0;
  Field last_ = Field::seq;
  Kind kind_ = Kind::unknown;
  std::array<std::array<Field, field_count>, kind_count> follows_{};
};

}  // namespace remat
