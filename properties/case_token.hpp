#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace remat {

// A case as text that can be pasted: `R3.`, the tape's choices, seven bits to a byte in base64url,
// and two digits that tell a damaged token. The number stands for the generator: a token of another
// one is refused, never read as another case. It goes up whenever an old token would mean another
// case (case_token_test holds both together).

std::string case_token(const std::vector<std::uint64_t>& choices);

/// The choices that the token stands for. Throws InputError for what is none.
std::vector<std::uint64_t> choices_of(const std::string& token);

/// Choices behind the last that is not 0 say nothing.
std::vector<std::uint64_t> without_trailing_zeros(std::vector<std::uint64_t> choices);

}  // namespace remat
