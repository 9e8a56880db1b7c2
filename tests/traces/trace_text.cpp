#include "tests/traces/trace_text.hpp"

#include <zlib.h>

#include <stdexcept>

#include "model/errors.hpp"
#include "traces/reader.hpp"

namespace remat {

std::string with_header(std::string_view lines) {
  return R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1})"
         "\n" +
         std::string(lines);
}

Trace trace_in(std::string_view bytes) {
  Trace trace;
  TraceReader reader(bytes_in_memory(bytes), "t");
  while (reader.read(trace, 1000) > 0) {
  }
  return trace;
}

std::string fault_in(std::string_view bytes) {
  try {
    trace_in(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  constexpr int gzip_window = 15 + 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot be started");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace remat
