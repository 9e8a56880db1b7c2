#include "traces/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "model/errors.hpp"

namespace remat {
namespace {

constexpr int gzip_level = 6;

/// Deflates into gzip framing, without a time stamp.
class Packer {
 public:
  Packer() {
    constexpr int gzip_window = 15 + 16;
    constexpr int memory_level = 8;
    if (deflateInit2(&stream_, gzip_level, Z_DEFLATED, gzip_window, memory_level,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw InternalError("zlib cannot be started");
  }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  ~Packer() { deflateEnd(&stream_); }

  /// Appends what `bytes` pack to; with `last`, the stream's end too.
  void pack(std::string_view bytes, bool last, std::string& to) {
    REMAT_INVARIANT(bytes.size() <= std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    std::array<char, std::size_t{64} * 1024> out{};
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = static_cast<uInt>(out.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      to.append(out.data(), out.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
};

bool is_special(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

}  // namespace

class OutputFile::Impl {
 public:
  explicit Impl(const std::string& path) : path_(path) {
    if (path == "-") {
      descriptor_ = STDOUT_FILENO;
      return;
    }
    // A pipe or a device (/dev/null, /dev/stdout) is written to; renaming over it would replace it.
    if (!is_special(path)) temporary_ = path + ".part" + std::to_string(getpid());
    const std::string& target = temporary_.empty() ? path_ : temporary_;
    descriptor_ = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("cannot be written");
    if (path.size() > 3 && path.substr(path.size() - 3) == ".gz")
      packer_ = std::make_unique<Packer>();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) close(descriptor_);
    if (!committed_ && !temporary_.empty()) std::remove(temporary_.c_str());
  }

  void write(std::string_view bytes) {
    if (!packer_) return write_raw(bytes);
    std::string packed;
    packer_->pack(bytes, false, packed);
    write_raw(packed);
  }

  void commit() {
    if (packer_) {
      std::string packed;
      packer_->pack({}, true, packed);
      write_raw(packed);
    }
    if (temporary_.empty()) return;  // nothing to rename
    const int status = close(descriptor_);
    descriptor_ = -1;
    if (status != 0) fail("cannot be written");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be written");
    committed_ = true;
  }

 private:
  void write_raw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail("cannot be written");
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_ + ": " + what + ": " + std::strerror(errno) +
                     "; expected a place that can be written to");
  }

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
  std::unique_ptr<Packer> packer_;
};

OutputFile::OutputFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
OutputFile::~OutputFile() = default;
void OutputFile::write(std::string_view bytes) {
  impl_->write(bytes);
}
void OutputFile::commit() {
  impl_->commit();
}

}  // namespace remat
