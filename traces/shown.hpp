#pragma once

#include <string>
#include <string_view>

namespace remat {

/// Somebody's text as a message can hold it: on one line, in valid UTF-8, the first 40 characters
/// of it. Control characters and bytes that are not UTF-8 are written as `\x01`.
std::string shown(std::string_view text);

/// How many bytes at the front of `text` are one character of valid UTF-8; 0 where they are none.
std::size_t utf8_length(std::string_view text);

}  // namespace remat
