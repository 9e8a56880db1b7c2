#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace remat {

/// One long trace made of recordings in a row, again and again, until it holds `bytes_min`: every
/// id is shifted, so that each round has tensors, storages, slots, frames and sessions of its own.
/// Written to `path` as JSON Lines; how many events it has.
std::int64_t write_repeated_trace(const std::vector<std::string>& recordings,
                                  std::int64_t bytes_min, const std::string& path);

}  // namespace remat
