#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace remat {

enum class Colour : std::uint8_t { none, green, red, yellow };

/// `text` in a colour, where `colours` are wanted.
std::string painted(std::string_view text, Colour colour, bool colours);
/// Standard output is a terminal and NO_COLOR is not set.
bool output_has_colours();
/// Standard error is a terminal.
bool progress_is_wanted();
/// One line that replaces the one before; an empty one clears it. To standard error.
void show_progress(std::string_view line);
/// `error: LINE`, to standard error.
void print_error(std::string_view line);
/// Columns that `text` (UTF-8) takes.
std::size_t width(std::string_view text);
/// `text` filled up with blanks to `columns`.
std::string padded(std::string_view text, std::size_t columns);
/// 12345678 as `12,345,678`.
std::string grouped(std::int64_t number);

}  // namespace remat
