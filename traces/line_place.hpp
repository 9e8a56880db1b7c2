#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace remat {

/// Where in an event we are: a field, an item of its list, a field of that, an item of that.
struct LinePlace {
  std::optional<std::string_view> field;  // none before the first one
  std::optional<std::size_t> item;
  std::optional<std::string_view> inner;
  std::optional<std::size_t> inner_item;

  /// As a JSON pointer; empty before the first field.
  std::string pointer() const;
  /// The field's name for messages.
  std::string name() const;
  /// What stands here, for messages: the field, or an item of its list.
  std::string subject() const;
};

}  // namespace remat
