// libFuzzer target: any bytes are a trace or an InputError, and what was read of them is written so
// that it reads back equal.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model/errors.hpp"
#include "tests/traces/trace_difference.hpp"
#include "traces/reader.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

Trace read_all(std::span<const char> bytes) {
  constexpr std::size_t block = 3;  // small, so that an event lies on either side of a block's end
  Trace trace;
  TraceReader reader(bytes_in_memory(bytes), "fuzz");
  while (reader.read(trace, block) > 0) {
  }
  return trace;
}

void require(bool condition, const std::string& what, const std::string& written) {
  if (condition) return;
  std::fprintf(stderr, "%s\n%s", what.c_str(), written.c_str());
  std::abort();
}

void check_what_is_written(const Trace& trace) {
  const std::string written = json_lines(trace);
  Trace again;
  try {
    again = read_all(written);
  } catch (const InputError& error) {
    require(false, error.what(), written);
  }
  const auto difference = first_difference(again, trace);
  require(!difference, difference.value_or(""), written);
  require(json_lines(again) == written, "written differently again", written);
}

void check_message(const std::string& message) {
  require(message.starts_with("fuzz:"), "a message without the file's name", message);
  require(message.find("; expected") != std::string::npos, "a message that expects nothing",
          message);
  require(message.find('\n') == std::string::npos, "a message of several lines", message);
}

}  // namespace
}  // namespace remat

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  try {
    remat::check_what_is_written(remat::read_all(bytes));
  } catch (const remat::InputError& error) {
    remat::check_message(error.what());
  }
  return 0;
}
