#include "traces/line_fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "traces/json_text.hpp"
#include "traces/shown.hpp"

namespace remat {
namespace {

/// How far the object at the front of a line goes, by its brackets and quotes alone.
struct Extent {
  std::size_t end = 0;  // past the bracket that closes it, or past the whole text
  bool closed = false;
  bool in_string = false;              // where it is not closed: the text ends inside a string
  std::optional<std::size_t> control;  // the first control character inside a string
};

Extent extent_of_object(std::string_view text) {
  Extent extent;
  std::size_t depth = 0;
  for (std::size_t& at = extent.end; at < text.size(); ++at) {
    const char c = text[at];
    if (extent.in_string) {
      if (static_cast<unsigned char>(c) < 0x20 && !extent.control) extent.control = at;
      if (c == '\\') ++at;
      if (c == '"') extent.in_string = false;
    } else if (c == '"') {
      extent.in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      ++at;
      extent.closed = true;
      return extent;
    }
  }
  extent.end = std::min(extent.end, text.size());
  return extent;
}

std::optional<std::size_t> first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string at_byte(std::string_view line, std::size_t at) {
  return fmt::format("byte {} of the line (0x{:02x})", at + 1,
                     static_cast<unsigned char>(line[at]));
}

}  // namespace

std::string line_fault(std::string_view line, std::string_view reason, std::string_view near) {
  constexpr std::string_view expected = "; expected one event, a JSON object";
  constexpr std::size_t character_bytes_max = 4;
  line = trimmed(line);
  const std::size_t start = std::min(line.find_first_not_of(" \t\r"), line.size());
  const std::string_view text = line.substr(start);
  if (text.empty()) return fmt::format("the line is empty{}", expected);
  if (text.starts_with("\xef\xbb\xbf"))
    return "the line begins with a byte-order mark; expected '{'";
  const Extent extent = extent_of_object(text);
  const auto not_utf8 = first_not_utf8(text);
  // Where a line is cut off inside a character, that is not what is wrong.
  if (not_utf8 &&
      (extent.closed || *not_utf8 == 0 || text.size() - *not_utf8 >= character_bytes_max))
    return at_byte(line, start + *not_utf8) + " is not valid UTF-8; expected JSON in UTF-8";
  if (text.front() != '{') {
    return fmt::format("the line begins with '{}'{}",
                       shown(text.substr(0, std::max<std::size_t>(utf8_length(text), 1))),
                       expected);
  }
  if (extent.control) {
    return at_byte(line, start + *extent.control) +
           " is a control character; expected it as an escape";
  }
  if (!extent.closed && extent.in_string && text.back() == '}')
    return fmt::format("a quote is missing: the line ends inside a string{}", expected);
  if (!extent.closed) {
    return fmt::format(
        "the line is cut off: it ends inside {}; expected a JSON object that ends in '}}'",
        extent.in_string ? "a string" : "the event");
  }
  if (extent.end < text.size())
    return "something follows the event on its line; expected one JSON object a line";
  return fmt::format("the line is not valid JSON{}{}: {}{}", near.empty() ? "" : " near ", near,
                     json_fault(text).value_or(std::string(reason)), expected);
}

}  // namespace remat
