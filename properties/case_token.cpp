#include "properties/case_token.hpp"

#include <string_view>

#include "model/errors.hpp"
#include "model/flat_map.hpp"

namespace remat {
namespace {

constexpr std::string_view prefix = "R3.";
constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t length_max = 1U << 20U;
constexpr std::size_t check_size = 2;

[[noreturn]] void refuse(const std::string& token, const std::string& why) {
  throw InputError("'" + token.substr(0, 40) + (token.size() > 40 ? "…" : "") +
                   "' is no case: " + why);
}

/// Two digits that a slip of the pen changes: of a damaged token nothing must be run.
std::string check_digits(std::string_view body) {
  const std::uint64_t bits = mixed_text(body, 1);
  return {digits[bits & 63U], digits[(bits >> 6U) & 63U]};
}

std::vector<std::uint8_t> decoded(const std::string& token) {
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  unsigned n_bits = 0;
  const std::string_view body = std::string_view(token).substr(prefix.size());
  for (std::size_t at = 0; at < body.size(); ++at) {
    const char digit = body[at];
    const std::size_t value = digits.find(digit);
    if (value == std::string_view::npos) {
      refuse(token, std::string("'") + digit +
                        "' is no digit of base64url; expected a token that fuzz or shrink has "
                        "printed");
    }
    if (at + check_size >= body.size()) continue;  // these are compared, not decoded
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
  return token + check_digits(std::string_view(token).substr(prefix.size()));
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
  const std::string_view body = std::string_view(token).substr(prefix.size());
  if (body.size() < check_size) refuse(token, "it breaks off; expected the whole token");
  std::vector<std::uint64_t> choices;
  const std::vector<std::uint8_t> bytes = decoded(token);
  if (body.substr(body.size() - check_size) !=
      check_digits(body.substr(0, body.size() - check_size)))
    refuse(token, "a character of it is missing or wrong; expected the whole token as printed");
  std::uint64_t choice = 0;
  unsigned shift = 0;
  for (const std::uint8_t byte : bytes) {
    if (shift > 63 || (shift == 63 && (byte & 127U) > 1))
      refuse(token, "a choice in it has more than 64 bits");
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
