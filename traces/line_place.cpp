#include "traces/line_place.hpp"

#include <fmt/format.h>

#include "traces/shown.hpp"

namespace remat {
namespace {

std::string escaped(std::string_view name) {
  std::string to;
  for (const char c : shown(name)) {
    if (c == '~') {
      to += "~0";
    } else if (c == '/') {
      to += "~1";
    } else {
      to += c;
    }
  }
  return to;
}

}  // namespace

std::string LinePlace::pointer() const {
  if (!field) return {};
  std::string path = "/" + escaped(*field);
  if (item) path += fmt::format("/{}", *item);
  if (inner) path += "/" + escaped(*inner);
  if (inner_item) path += fmt::format("/{}", *inner_item);
  return path;
}

std::string LinePlace::name() const {
  const std::string_view spelling = inner ? *inner : field.value_or(std::string_view{});
  return spelling.empty() ? "\"\"" : shown(spelling);
}

std::string LinePlace::subject() const {
  const bool in_list = inner ? inner_item.has_value() : item.has_value();
  return (in_list ? "an item of " : "") + name();
}

}  // namespace remat
