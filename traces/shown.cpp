#include "traces/shown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace remat {
namespace {

struct Utf8Form {
  std::uint8_t mask, lead;  // the lead byte under the mask
  std::size_t length;       // in bytes
  std::uint32_t first,
      last;  // the code points that this form may stand for: the shortest form only
};

constexpr Utf8Form utf8_forms[] = {{0x80, 0x00, 1, 0x0, 0x7f},
                                   {0xe0, 0xc0, 2, 0x80, 0x7ff},
                                   {0xf0, 0xe0, 3, 0x800, 0xffff},
                                   {0xf8, 0xf0, 4, 0x10000, 0x10ffff}};

bool is_surrogate(std::uint32_t code_point) {
  return code_point >= 0xd800 && code_point < 0xe000;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text.front());
  for (const Utf8Form& form : utf8_forms) {
    if ((lead & form.mask) != form.lead) continue;
    if (text.size() < form.length) return 0;
    std::uint32_t code_point = lead & ~static_cast<std::uint32_t>(form.mask) & 0xffU;
    for (std::size_t i = 1; i < form.length; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xc0U) != 0x80U) return 0;
      code_point = (code_point << 6U) | (next & 0x3fU);
    }
    const bool in_range = code_point >= form.first && code_point <= form.last;
    return in_range && !is_surrogate(code_point) ? form.length : 0;
  }
  return 0;
}

std::string shown(std::string_view text) {
  constexpr int characters_max = 40;
  std::string to;
  for (int n = 0; !text.empty(); ++n) {
    if (n == characters_max) return to + "…";
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      to += fmt::format("\\x{:02x}", byte);
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return to;
}

}  // namespace remat
