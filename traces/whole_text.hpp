#pragma once

#include <cstddef>
#include <string>

namespace remat {

/// What messages call a path: `-` is standard input.
std::string shown_path(const std::string& path);

/// All of a file (as `open_bytes` reads it). Throws InputError with the file's name where it cannot
/// be read or is larger than so many MiB; `expected` says what it should have been.
std::string whole_text(const std::string& path, std::size_t mib_max, const std::string& expected);

}  // namespace remat
