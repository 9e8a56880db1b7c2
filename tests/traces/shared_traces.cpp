#include "tests/traces/shared_traces.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/sanitizers.hpp"
#include "traces/byte_source.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

void add_traces_under(const fs::path& folder, std::vector<std::string>& to) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".jsonl") || path.ends_with(".jsonl.gz")) to.push_back(path);
  }
}

}  // namespace

std::vector<std::string> traces_of_others() {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path shared = given != nullptr ? given : REMATSIM_SHARED_DEFAULT;
  std::vector<std::string> paths;
  if (fs::is_directory(shared / "data")) {
    for (const char* folder : {"cases", "recorded", "hyperparallel"}) {
      if (fs::is_directory(shared / "data" / folder))
        add_traces_under(shared / "data" / folder, paths);
    }
  } else {
    WARN("no " << (shared / "data").string() << ": only the traces in traces/recorded are read");
    add_traces_under(fs::path(REMATSIM_SOURCE_DIR) / "traces" / "recorded", paths);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> some_traces_of_others() {
  std::vector<std::string> paths = traces_of_others();
  if (!built_with_sanitizers) return paths;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < paths.size(); i += 10)
    some.push_back(paths[i]);
  return some;
}

std::string unpacked_bytes(const std::string& path) {
  const auto source = open_bytes(path);
  std::string bytes;
  std::array<char, std::size_t{64} * 1024> block{};
  while (const std::size_t got = source->read(block))
    bytes.append(block.data(), got);
  return bytes;
}

}  // namespace remat
