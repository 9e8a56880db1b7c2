#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remat {

/// A JSON file that a person wrote, kept with its text so that an error can name the line.
class JsonDocument {
 public:
  /// Throws InputError with the line where `text` is not JSON. `file` is what messages call it.
  JsonDocument(std::string file, std::string text);

  const nlohmann::ordered_json& root() const { return root_; }
  const std::string& file() const { return file_; }
  /// The line, from 1, on which the value at the pointer begins.
  std::size_t line_of(const std::string& pointer) const;

 private:
  std::string file_;
  std::string text_;
  nlohmann::ordered_json root_;
};

/// A value of a document and where it stands. What it gives is checked; what is wrong is thrown as
/// an InputError that names file, line, pointer, what was found and what was expected.
class JsonPlace {
 public:
  explicit JsonPlace(const JsonDocument& document)
      : document_(&document), value_(&document.root()) {}

  [[noreturn]] void fail(const std::string& what) const;

  bool has(std::string_view key) const;
  JsonPlace at(std::string_view key) const;
  std::optional<JsonPlace> find(std::string_view key) const;
  /// All keys must be among these.
  void allow_only(std::initializer_list<std::string_view> keys) const {
    allow_only(std::span(keys.begin(), keys.size()));
  }
  void allow_only(std::span<const std::string_view> keys) const;
  std::vector<std::string> keys() const;
  std::vector<JsonPlace> items() const;

  bool is_string() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  std::string text() const;
  bool boolean() const;
  /// An integer of at least `least`.
  std::int64_t integer(std::int64_t least) const;
  /// A number from 0 to 1.
  double fraction() const;
  std::vector<std::string> texts() const;
  std::vector<std::int64_t> integers(std::int64_t least) const;
  /// The value as compact JSON text.
  std::string dumped() const { return value_->dump(); }
  const std::string& pointer() const { return pointer_; }

 private:
  JsonPlace(const JsonDocument& document, const nlohmann::ordered_json& value, std::string pointer)
      : document_(&document), value_(&value), pointer_(std::move(pointer)) {}
  void require_object() const;

  const JsonDocument* document_;
  const nlohmann::ordered_json* value_;
  std::string pointer_;
};

}  // namespace remat
