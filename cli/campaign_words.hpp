#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace remat {

// What a user types for a campaign. All throw InputError that names the option.

/// "17", "0x2a", or the 40 hexadecimal digits of a commit.
std::uint64_t seed_of(const std::string& text);
/// "60s", "500ms", "2m", "1h"; a bare number is seconds.
double seconds_of(const std::string& text);
/// "4", or "auto": as many as the machine has.
unsigned jobs_of(const std::string& text);
/// "2/4": part 2 of 4, counted from 0.
std::pair<std::uint64_t, std::uint64_t> shard_of(const std::string& text);
/// The choices of a case that is given as a token, or as a file that holds one: a saved scenario,
/// or the token alone.
std::vector<std::uint64_t> case_of(const std::string& token_or_file);

}  // namespace remat
