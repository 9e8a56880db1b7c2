#include "traces/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace remat {
namespace {

class FileBytes : public ByteSource {
 public:
  explicit FileBytes(int descriptor) : descriptor_(descriptor) {}
  ~FileBytes() override {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  std::size_t read(std::span<char> into) override {
    for (;;) {
      const ssize_t got = ::read(descriptor_, into.data(), into.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      throw SourceError(errno == EISDIR ? std::string("is a directory, not a trace")
                                        : std::string("cannot be read: ") + std::strerror(errno));
    }
  }

 private:
  int descriptor_;
};

class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::span<const char> bytes) : bytes_(bytes) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t size = std::min(into.size(), bytes_.size());
    std::copy_n(bytes_.begin(), size, into.begin());
    bytes_ = bytes_.subspan(size);
    return size;
  }

 private:
  std::span<const char> bytes_;
};

/// Gives back bytes that were looked at, then goes on with the source they came from.
class PeekedBytes : public ByteSource {
 public:
  PeekedBytes(std::vector<char> peeked, std::unique_ptr<ByteSource> rest)
      : peeked_(std::move(peeked)), rest_(std::move(rest)) {}
  std::size_t read(std::span<char> into) override {
    if (given_ == peeked_.size()) return rest_->read(into);
    const std::size_t size = std::min(into.size(), peeked_.size() - given_);
    std::copy_n(peeked_.begin() + static_cast<std::ptrdiff_t>(given_), size, into.begin());
    given_ += size;
    return size;
  }

 private:
  std::vector<char> peeked_;
  std::size_t given_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

class GzipBytes : public ByteSource {
 public:
  explicit GzipBytes(std::unique_ptr<ByteSource> packed) : packed_(std::move(packed)) {
    constexpr int gzip_only = 15 + 16;  // the largest window, gzip framing
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw SourceError("zlib cannot be started");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }

  /// What was unpacked before the stream went wrong is given out first: the lines in it are read,
  /// and the fault gets the number of the line that it is in.
  std::size_t read(std::span<char> into) override {
    if (into.empty()) return 0;
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30U));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (!damage_.empty()) throw SourceError(damage_);
      if (stream_.avail_in == 0 && !refill()) {
        if (member_ended_) return 0;
        throw SourceError("the gzip stream is cut off");
      }
      if (member_ended_) start_member();
      inflate_some();
    }
    return room - stream_.avail_out;
  }

 private:
  bool refill() {
    const std::size_t got = packed_->read(buffer_);
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }
  void start_member() {
    inflateReset(&stream_);
    member_ended_ = false;
  }
  void inflate_some() {
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      member_ended_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      damage_ = std::string("the gzip stream is damaged: ") +
                (stream_.msg != nullptr ? stream_.msg : "it does not decompress");
    }
  }

  std::unique_ptr<ByteSource> packed_;
  z_stream stream_{};
  std::array<char, std::size_t{64} * 1024> buffer_{};
  bool member_ended_ = false;
  std::string damage_;  // empty as long as there is none
};

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> source) {
  std::vector<char> head(2);
  std::size_t size = 0;
  while (size < head.size()) {
    const std::size_t got = source->read(std::span(head).subspan(size));
    if (got == 0) break;
    size += got;
  }
  head.resize(size);
  const bool gzip = size == 2 && head[0] == '\x1f' && head[1] == '\x8b';
  auto whole = std::make_unique<PeekedBytes>(std::move(head), std::move(source));
  if (!gzip) return whole;
  return std::make_unique<GzipBytes>(std::move(whole));
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  if (path == "-") return unpacked(std::make_unique<FileBytes>(STDIN_FILENO));
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw SourceError(std::string("cannot be opened: ") + std::strerror(errno));
  return unpacked(std::make_unique<FileBytes>(descriptor));
}

std::unique_ptr<ByteSource> bytes_in_memory(std::span<const char> bytes) {
  return unpacked(std::make_unique<MemoryBytes>(bytes));
}

}  // namespace remat
