#include "model/json_place.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "model/listed.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

/// A key inside a JSON pointer (RFC 6901).
std::string pointer_part(std::string_view key) {
  std::string part;
  for (const char letter : key) {
    if (letter == '~') {
      part += "~0";
    } else if (letter == '/') {
      part += "~1";
    } else {
      part += letter;
    }
  }
  return part;
}

/// An error is one line: what would break it is shown as JSON writes it.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code >= 0x20 && code != 0x7f) {
      line += letter;
      continue;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    line += "\\u00";
    line += digits[code >> 4U];
    line += digits[code & 15U];
  }
  return line;
}

/// Walks the text of valid JSON, looking for one pointer.
class LineFinder {
 public:
  LineFinder(std::string_view text, std::string_view wanted) : text_(text), wanted_(wanted) {}

  std::size_t find() {
    walk("");
    return found_;
  }

 private:
  void skip_blank() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      line_ += text_[at_] == '\n' ? 1U : 0U;
      ++at_;
    }
  }
  bool next_is(char letter) {
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  std::string string() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"')
      at_ += text_[at_] == '\\' ? 2U : 1U;
    ++at_;
    return Json::parse(text_.substr(begin, at_ - begin)).get<std::string>();
  }
  void walk(const std::string& pointer) {
    skip_blank();
    if (pointer == wanted_) found_ = line_;
    if (at_ >= text_.size()) return;
    if (text_[at_] == '{') {
      ++at_;
      while (!next_is('}')) {
        skip_blank();
        const std::size_t key_line = line_;
        const std::string inner = pointer + "/" + pointer_part(string());
        next_is(':');
        walk(inner);
        if (inner == wanted_) found_ = key_line;
        next_is(',');
      }
    } else if (text_[at_] == '[') {
      ++at_;
      for (std::size_t i = 0; !next_is(']'); ++i) {
        walk(pointer + "/" + std::to_string(i));
        next_is(',');
      }
    } else if (text_[at_] == '"') {
      string();
    } else {
      while (at_ < text_.size() &&
             std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
  }

  std::string_view text_;
  std::string_view wanted_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t found_ = 1;
};

std::size_t line_at(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

/// Where brackets are nested more than `nesting_max` deep; none where they are not. Walking a value
/// takes stack for each level, and no scenario needs many.
constexpr std::size_t nesting_max = 256;
std::optional<std::size_t> byte_nested_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string && letter == '\\') {
      ++at;
    } else if (letter == '"') {
      in_string = !in_string;
    } else if (!in_string && (letter == '[' || letter == '{')) {
      if (++depth > nesting_max) return at;
    } else if (!in_string && (letter == ']' || letter == '}') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

std::string kind_of(const Json& value) {
  if (value.is_string())
    return "the text " + value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return value.is_structured() ? std::string(value.type_name()) : value.dump();
}

}  // namespace

JsonDocument::JsonDocument(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)) {
  if (const auto byte = byte_nested_too_deep(text_)) {
    throw InputError(file_ + ":" + std::to_string(line_at(text_, *byte)) +
                     ": lists and objects are nested more than " + std::to_string(nesting_max) +
                     " deep at byte " + std::to_string(*byte) + "; expected fewer");
  }
  try {
    root_ = Json::parse(text_);
  } catch (const Json::parse_error& error) {
    const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    throw InputError(file_ + ":" + std::to_string(line_at(text_, byte)) +
                     ": this is not JSON at byte " + std::to_string(byte) +
                     "; expected one JSON object");
  }
}

std::size_t JsonDocument::line_of(const std::string& pointer) const {
  return LineFinder(text_, pointer).find();
}

void JsonPlace::fail(const std::string& what) const {
  throw InputError(document_->file() + ":" + std::to_string(document_->line_of(pointer_)) + ": " +
                   on_one_line(what + " (at " + (pointer_.empty() ? "/" : pointer_) + ")"));
}

void JsonPlace::require_object() const {
  if (!value_->is_object()) fail("this is " + kind_of(*value_) + "; expected an object");
}

bool JsonPlace::has(std::string_view key) const {
  require_object();
  return value_->contains(key);
}

JsonPlace JsonPlace::at(std::string_view key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end()) fail("'" + std::string(key) + "' is missing; expected it here");
  return {*document_, *found, pointer_ + "/" + pointer_part(key)};
}

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
  return has(key) ? std::optional(at(key)) : std::nullopt;
}

void JsonPlace::allow_only(std::span<const std::string_view> keys) const {
  for (const std::string& key : this->keys()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string what = "unknown key '";
    what += key;
    what += "'; expected one of ";
    what += listed(keys);
    at(key).fail(what);
  }
}

std::vector<std::string> JsonPlace::keys() const {
  require_object();
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items())
    keys.push_back(key);
  return keys;
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!value_->is_array()) fail("this is " + kind_of(*value_) + "; expected a list");
  std::vector<JsonPlace> items;
  items.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    items.push_back(JsonPlace(*document_, (*value_)[i], pointer_ + "/" + std::to_string(i)));
  return items;
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) fail("this is " + kind_of(*value_) + "; expected a text");
  return value_->get<std::string>();
}

bool JsonPlace::boolean() const {
  if (!value_->is_boolean()) fail("this is " + kind_of(*value_) + "; expected true or false");
  return value_->get<bool>();
}

std::int64_t JsonPlace::integer(std::int64_t least) const {
  const bool fits = value_->is_number_integer() &&
                    !(value_->is_number_unsigned() &&
                      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
  if (!fits || value_->get<std::int64_t>() < least) {
    fail("this is " + kind_of(*value_) + "; expected an integer of " + std::to_string(least) +
         " or more");
  }
  return value_->get<std::int64_t>();
}

double JsonPlace::fraction() const {
  const bool fits = value_->is_number() && value_->get<double>() >= 0 && value_->get<double>() <= 1;
  if (!fits) fail("this is " + kind_of(*value_) + "; expected a number from 0 to 1");
  return value_->get<double>();
}

std::vector<std::string> JsonPlace::texts() const {
  std::vector<std::string> texts;
  for (const JsonPlace& item : items())
    texts.push_back(item.text());
  return texts;
}

std::vector<std::int64_t> JsonPlace::integers(std::int64_t least) const {
  std::vector<std::int64_t> numbers;
  for (const JsonPlace& item : items())
    numbers.push_back(item.integer(least));
  return numbers;
}

}  // namespace remat
