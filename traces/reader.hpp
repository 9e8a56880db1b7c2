#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "traces/byte_source.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What the header's `format` and `version` say of the format that this program reads and writes.
inline constexpr std::string_view format_name = "ckpt-trace";
inline constexpr std::int64_t format_version = 1;

/// What a reader met that version 1 of the format does not know: kept, and counted here by name.
struct UnknownCounts {
  std::map<std::string, std::int64_t> kinds;
  std::map<std::string, std::int64_t> fields;  // `kind.field`
};

/// Reads `ckpt-trace` version 1, JSON Lines or gzip, event by event. Everything malformed is an
/// InputError that names the file as the user did, the line, the field and what was expected: a
/// line cut off, a wrong type, a number out of range, `seq` not increasing, an id used before an
/// event described it, another format, a newer version.
class TraceReader {
 public:
  /// `shown_name` is the file's name in messages. Throws InputError where the path cannot be
  /// opened.
  explicit TraceReader(const std::string& path);
  TraceReader(std::unique_ptr<ByteSource> source, std::string shown_name);
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  /// Appends at most `events_max` events to `into`, always the same trace; how many. 0 is the end
  /// of the trace.
  std::size_t read(Trace& into, std::size_t events_max);

  const std::string& shown_name() const;
  const UnknownCounts& unknown() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The whole trace at `path` in memory. Throws InputError.
Trace read_trace(const std::string& path);

}  // namespace remat
