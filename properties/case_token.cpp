#include "properties/case_token.hpp"

#include <string_view>

#include "model/errors.hpp"

namespace remat {
namespace {

constexpr std::string_view prefix = "R1.";
constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t length_max = 1U << 20U;

[[noreturn]] void refuse(const std::string& token, const std::string& why) {
  throw InputError("'" + token.substr(0, 40) + (token.size() > 40 ? "…" : "") +
                   "' is no case: " + why);
}

std::vector<std::uint8_t> decoded(const std::string& token) {
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  unsigned n_bits = 0;
  for (const char digit : std::string_view(token).substr(prefix.size())) {
    const std::size_t value = digits.find(digit);
    if (value == std::string_view::npos)
      refuse(token, std::string("'") + digit +
                        "' is no digit of base64url; expected a token that "
                        "fuzz or shrink has printed");
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>((bits >> n_bits) & 0xffU));
  }
  return bytes;
}

}  // namespace

std::vector<std::uint64_t> without_trailing_zeros(std::vector<std::uint64_t> choices) {
  while (!choices.empty() && choices.back() == 0)
    choices.pop_back();
  return choices;
}

std::string case_token(const std::vector<std::uint64_t>& choices) {
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t choice : without_trailing_zeros(choices)) {
    for (; choice >= 128; choice >>= 7U)
      bytes.push_back(static_cast<std::uint8_t>(choice | 128U));
    bytes.push_back(static_cast<std::uint8_t>(choice));
  }
  std::string token(prefix);
  std::uint32_t bits = 0;
  unsigned n_bits = 0;
  for (const std::uint8_t byte : bytes) {
    bits = (bits << 8U) | byte;
    for (n_bits += 8; n_bits >= 6; n_bits -= 6)
      token += digits[(bits >> (n_bits - 6)) & 63U];
  }
  if (n_bits > 0) token += digits[(bits << (6 - n_bits)) & 63U];
  return token;
}

std::vector<std::uint64_t> choices_of(const std::string& token) {
  if (token.size() > length_max) refuse(token, "it is longer than any; expected 1 MiB or less");
  if (!token.starts_with(prefix)) {
    const bool is_of_another =
        token.size() > 2 && token[0] == 'R' && token[1] >= '0' && token[1] <= '9';
    refuse(token, is_of_another ? "it is of another version of the generator; expected one that "
                                  "begins with " +
                                      std::string(prefix)
                                : "it does not begin with " + std::string(prefix));
  }
  std::vector<std::uint64_t> choices;
  std::uint64_t choice = 0;
  unsigned shift = 0;
  for (const std::uint8_t byte : decoded(token)) {
    if (shift > 63) refuse(token, "a choice in it has more than 64 bits");
    choice |= static_cast<std::uint64_t>(byte & 127U) << shift;
    shift += 7;
    if ((byte & 128U) != 0) continue;
    choices.push_back(choice);
    choice = 0;
    shift = 0;
  }
  if (shift != 0) refuse(token, "it breaks off; expected the whole token");
  return choices;
}

}  // namespace remat
