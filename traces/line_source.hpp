#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/byte_source.hpp"

namespace remat {

/// Cuts a byte source into lines without copying them: each lies in a buffer that goes on for at
/// least `padding` bytes.
class LineSource {
 public:
  /// Longer lines are refused: one event is never that long, and a file without line ends must not
  /// fill the memory.
  static constexpr std::size_t line_bytes_max = std::size_t{16} << 20U;

  LineSource(std::unique_ptr<ByteSource> source, std::size_t padding);

  /// The next line without its end, valid until the next call; none at the end of the bytes. A last
  /// line without a line end counts. Throws SourceError; LineError where the line is too long.
  std::optional<std::string_view> next();
  /// Number of the line that `next` gave last, from 1.
  std::int64_t line_number() const { return line_number_; }
  /// How many bytes may be read from the start of `line` on.
  std::size_t readable(std::string_view line) const;

 private:
  bool fill();

  std::unique_ptr<ByteSource> source_;
  std::size_t padding_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;     // first byte not given out yet
  std::size_t end_ = 0;       // past the last byte read
  std::size_t searched_ = 0;  // no line end before this one
  bool at_end_ = false;
  std::int64_t line_number_ = 0;
};

}  // namespace remat
