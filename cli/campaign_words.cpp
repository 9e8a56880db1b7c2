#include "cli/campaign_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/errors.hpp"
#include "properties/case_token.hpp"
#include "traces/byte_source.hpp"

namespace remat {
namespace {

/// The text is a number from its first character to its last; `how` is a base, or how a real
/// number may be written.
template <typename Number, typename How>
bool parse_whole(std::string_view text, Number& number, How how) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, how);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string content_of(const std::string& path) {
  constexpr std::size_t bytes_max = std::size_t{16} << 20U;
  std::string text;
  try {
    const std::unique_ptr<ByteSource> source = open_bytes(path);
    std::array<char, 65536> block{};
    for (std::size_t n = 0; (n = source->read(block)) > 0 && text.size() < bytes_max;)
      text.append(block.data(), n);
  } catch (const SourceError& error) {
    throw InputError(path + ": " + error.what());
  }
  return text;
}

}  // namespace

std::uint64_t seed_of(const std::string& text) {
  std::uint64_t seed = 0;
  constexpr std::size_t commit_digits = 40;
  const bool is_commit = text.size() == commit_digits &&
                         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (is_commit && parse_whole(text.substr(0, 16), seed, 16)) return seed;
  if (text.starts_with("0x") && parse_whole(text.substr(2), seed, 16)) return seed;
  if (parse_whole(text, seed, 10)) return seed;
  throw InputError("--seed '" + text +
                   "' is no seed; expected a number, 0x and hexadecimal digits, or the 40 digits "
                   "of a commit");
}

double seconds_of(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units = {
      {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  std::string_view number = text;
  double unit = 1;
  for (const auto& [name, seconds] : units) {
    if (!number.ends_with(name)) continue;
    number.remove_suffix(name.size());
    unit = seconds;
    break;
  }
  double value = 0;
  if (!parse_whole(number, value, std::chars_format::fixed) || !(value >= 0) || value * unit > 1e9)
    throw InputError("--budget '" + text + "' is no time; expected 60s, 500ms, 2m or 1h");
  return value * unit;
}

unsigned jobs_of(const std::string& text) {
  constexpr unsigned jobs_max = 1024;
  if (text == "auto") return std::max(1U, std::thread::hardware_concurrency());
  unsigned jobs = 0;
  if (!parse_whole(text, jobs, 10) || jobs == 0 || jobs > jobs_max)
    throw InputError("--jobs '" + text + "' is no number of jobs; expected 1 to 1024, or auto");
  return jobs;
}

std::pair<std::uint64_t, std::uint64_t> shard_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  std::uint64_t part = 0;
  std::uint64_t parts = 0;
  const bool is_right = slash != std::string::npos &&
                        parse_whole(text.substr(0, slash), part, 10) &&
                        parse_whole(text.substr(slash + 1), parts, 10) && part < parts;
  if (!is_right)
    throw InputError("--shard '" + text + "' is no part; expected I/N with I from 0 to N - 1");
  return {part, parts};
}

std::vector<std::uint64_t> case_of(const std::string& token_or_file) {
  std::error_code error;  // a long token is no file's name
  if (token_or_file != "-" && !std::filesystem::exists(token_or_file, error)) {
    const bool looks_like_a_file =
        token_or_file.find_first_of("/.") != std::string::npos && !token_or_file.starts_with("R");
    if (looks_like_a_file)
      throw InputError(token_or_file + ": there is no such file; expected one, or a token");
    return choices_of(token_or_file);
  }
  std::string text = content_of(token_or_file);
  if (text.find('{') == std::string::npos) {
    text.erase(std::remove_if(text.begin(), text.end(),
                              [](unsigned char c) { return std::isspace(c) != 0; }),
               text.end());
    try {
      return choices_of(text);
    } catch (const InputError& error_in_file) {
      throw InputError(token_or_file + ": " + error_in_file.what());
    }
  }
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("case") || !json["case"].is_string()) {
    throw InputError(token_or_file +
                     ": no case is named in it; expected a token, or a scenario that fuzz or "
                     "shrink has saved, with its 'case'");
  }
  return choices_of(json["case"].get<std::string>());
}

}  // namespace remat
