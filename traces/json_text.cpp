#include "traces/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "traces/shown.hpp"

namespace remat {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// The four hexadecimal digits at the front of `text` as a number.
std::optional<std::uint32_t> hex_digits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t number = 0;
  for (const char c : text.substr(0, 4)) {
    number <<= 4U;
    if (c >= '0' && c <= '9') {
      number |= static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      number |= static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      number |= static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
  }
  return number;
}

/// How many bytes the escape at the front of `text` takes, a surrogate pair as one; 0 where it is
/// wrong.
std::size_t escape_length(std::string_view text) {
  constexpr std::size_t unicode_length = 6;  // \u and four digits
  if (text.size() < 2) return 0;
  if (std::string_view("\"\\/bfnrt").find(text[1]) != std::string_view::npos) return 2;
  if (text[1] != 'u') return 0;
  const auto unit = hex_digits(text.substr(2));
  if (!unit) return 0;
  if (*unit < 0xd800 || *unit > 0xdfff) return unicode_length;
  if (*unit > 0xdbff || text.substr(unicode_length, 2) != "\\u") return 0;
  const auto low = hex_digits(text.substr(unicode_length + 2));
  return low && *low >= 0xdc00 && *low <= 0xdfff ? 2 * unicode_length : 0;
}

/// Goes over the text of one JSON value without recursion.
class Walk {
 public:
  explicit Walk(std::string_view text) : rest_(text) {}

  std::optional<std::string> fault() {
    if (walk()) return std::nullopt;
    return fault_;
  }

 private:
  bool walk() {
    if (!value()) return false;
    while (!open_.empty()) {
      if (!next_item()) return false;
      if (!open_.empty() && !value()) return false;
    }
    skip_space();
    return rest_.empty() || wrong(fmt::format("{} follows it", shown(rest_)));
  }
  bool wrong(std::string what) {
    fault_ = std::move(what);
    return false;
  }
  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front()))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A value that is no container; or the beginning of one, down to its first item, closed at once
  /// where it is empty.
  bool value() {
    for (;;) {
      skip_space();
      if (rest_.empty()) return wrong("it ends where a value is due");
      if (rest_.front() == '"') return string();
      if (rest_.front() != '{' && rest_.front() != '[') return scalar();
      if (open_.size() == json_depth_max)
        return wrong(fmt::format("it nests over {} levels deep", json_depth_max));
      const bool object = rest_.front() == '{';
      rest_.remove_prefix(1);
      if (take(object ? '}' : ']')) return true;
      open_ += object ? '}' : ']';
      if (object && !key()) return false;
    }
  }

  /// Closes what ends here, then goes past the comma and, in an object, the key.
  bool next_item() {
    while (take(open_.back())) {
      open_.pop_back();
      if (open_.empty()) return true;
    }
    if (!take(',')) return wrong(fmt::format("',' or '{}' is missing", open_.back()));
    return open_.back() == ']' || key();
  }

  bool key() {
    skip_space();
    if (rest_.empty() || rest_.front() != '"') return wrong("a key is missing");
    return string() && (take(':') || wrong("':' is missing after a key"));
  }

  bool string() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"')
      end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return wrong("a string does not end");
    if (auto fault = escape_fault(rest_.substr(0, end + 1))) return wrong(*std::move(fault));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool scalar() {
    const std::string_view token = rest_.substr(0, rest_.find_first_of(" \t\r\n,:[]{}\""));
    if (token.empty()) return wrong(fmt::format("'{}' stands where a value is due", rest_.front()));
    if (token != "true" && token != "false" && token != "null" && !is_json_number(token))
      return wrong(fmt::format("{} is no JSON value", shown(token)));
    rest_.remove_prefix(token.size());
    return true;
  }

  std::string_view rest_;
  std::string open_;  // the brackets that are due, the innermost last
  std::string fault_;
};

}  // namespace

bool is_json_number(std::string_view text) {
  const auto take_digits = [&] {
    const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(n);
    return n;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool leading_zero = text.starts_with('0');
  const std::size_t whole = take_digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

std::optional<std::string> escape_fault(std::string_view quoted) {
  for (std::size_t at = quoted.find('\\'); at != std::string_view::npos;) {
    const std::string_view rest = quoted.substr(at);
    const std::size_t length = escape_length(rest);
    if (length == 0) {
      const bool unicode = rest.starts_with("\\u");
      if (unicode && hex_digits(rest.substr(2)))
        return fmt::format("{} is half of a surrogate pair", rest.substr(0, 6));
      return fmt::format(
          "{} is no escape of JSON",
          shown(rest.substr(0, std::min<std::size_t>(rest.find('"'), unicode ? 6 : 2))));
    }
    at = quoted.find('\\', at + length);
  }
  return std::nullopt;
}

std::optional<std::string> json_fault(std::string_view text) {
  return Walk(text).fault();
}

void append_json_string(std::string_view text, std::string& to) {
  to += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        to += "\\\"";
        break;
      case '\\':
        to += "\\\\";
        break;
      case '\b':
        to += "\\b";
        break;
      case '\f':
        to += "\\f";
        break;
      case '\n':
        to += "\\n";
        break;
      case '\r':
        to += "\\r";
        break;
      case '\t':
        to += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          to += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          to += c;
        }
    }
  }
  to += '"';
}

}  // namespace remat
