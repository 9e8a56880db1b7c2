#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace remat {

std::string painted(std::string_view text, Colour colour, bool colours) {
  if (!colours || colour == Colour::none) return std::string(text);
  const char* code = colour == Colour::green ? "32" : colour == Colour::red ? "31" : "33";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

bool output_has_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

bool progress_is_wanted() {
  return isatty(STDERR_FILENO) == 1;
}

void show_progress(std::string_view line) {
  fmt::print(stderr, "\r\x1b[K{}", line);
}

void print_error(std::string_view line) {
  fmt::print(stderr, "error: {}\n", line);
}

std::size_t width(std::string_view text) {
  const auto begins_a_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_a_character));
}

std::string padded(std::string_view text, std::size_t columns) {
  std::string filled(text);
  if (const std::size_t taken = width(text); taken < columns) filled.append(columns - taken, ' ');
  return filled;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace remat
