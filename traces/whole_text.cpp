#include "traces/whole_text.hpp"

#include <array>
#include <memory>

#include "model/errors.hpp"
#include "traces/byte_source.hpp"

namespace remat {

std::string shown_path(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

std::string whole_text(const std::string& path, std::size_t mib_max, const std::string& expected) {
  std::string text;
  try {
    const std::unique_ptr<ByteSource> source = open_bytes(path);
    std::array<char, 65536> block{};
    for (std::size_t n = 0; (n = source->read(block)) > 0;) {
      text.append(block.data(), n);
      if (text.size() > mib_max << 20U) {
        throw InputError(shown_path(path) + ": larger than " + std::to_string(mib_max) +
                         " MiB; expected " + expected);
      }
    }
  } catch (const SourceError& error) {
    throw InputError(shown_path(path) + ": " + error.what());
  }
  return text;
}

}  // namespace remat
