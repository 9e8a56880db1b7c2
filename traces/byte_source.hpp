#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace remat {

/// Where bytes come from: a file, standard input, either of them gzipped.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Fills the front of `into` and says how much; 0 is the end. Throws SourceError.
  virtual std::size_t read(std::span<char> into) = 0;
};

/// Bytes could not be read: what went wrong, without the file's name.
class SourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Opens `path` (`-` is standard input). gzip is told by its first two bytes, whatever the name;
/// several gzip members in a row are one stream. Throws SourceError where the path cannot be
/// opened.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// Bytes in memory, for tests and fuzzing; `bytes` must outlive it.
std::unique_ptr<ByteSource> bytes_in_memory(std::span<const char> bytes);

}  // namespace remat
