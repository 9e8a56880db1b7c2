#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace remat {

/// "a, b, c": names for a message, each as `name` has it of what the range holds.
template <typename Range, typename Name = std::identity>
std::string listed(const Range& range, Name name = {}) {
  std::string text;
  for (const auto& each : range) {
    if (!text.empty()) text += ", ";
    text += std::string_view(std::invoke(name, each));
  }
  return text;
}

}  // namespace remat
