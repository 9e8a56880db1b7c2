#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace remat {

/// A value nests at most this deep: whoever reads it after us may go down by recursion.
inline constexpr std::size_t json_depth_max = 100;

/// `text` without the white space of JSON at its end.
inline std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.back()))
    text.remove_suffix(1);
  return text;
}

/// Number syntax of JSON, which allows neither `01` nor `1.` nor `+1`; any size.
bool is_json_number(std::string_view text);

/// What is wrong with the escapes of a JSON string, given with its quotes; none where they are
/// right. Half of a surrogate pair is wrong: it is no character.
std::optional<std::string> escape_fault(std::string_view quoted);

/// Why `text`, in valid UTF-8, is not one JSON value; none where it is one. (simdjson on demand
/// hands out the text of a list or an object after no more than counting its brackets.)
std::optional<std::string> json_fault(std::string_view text);

/// Appends `text` as a JSON string.
void append_json_string(std::string_view text, std::string& to);

}  // namespace remat
