#include "traces/line_source.hpp"

#include <cstring>
#include <string>

#include "traces/line_error.hpp"

namespace remat {
namespace {
constexpr std::size_t block_bytes = std::size_t{1} << 18U;
}

LineSource::LineSource(std::unique_ptr<ByteSource> source, std::size_t padding)
    : source_(std::move(source)), padding_(padding), buffer_(block_bytes + padding) {}

bool LineSource::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    searched_ -= begin_;
    begin_ = 0;
  }
  if (end_ + padding_ == buffer_.size()) {
    if (end_ >= line_bytes_max) {
      throw LineError("the line is over " + std::to_string(line_bytes_max >> 20U) +
                      " MiB long; expected one event a line");
    }
    buffer_.resize(end_ * 2 + padding_);
  }
  const std::size_t got = source_->read({buffer_.data() + end_, buffer_.size() - padding_ - end_});
  end_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

std::optional<std::string_view> LineSource::next() {
  ++line_number_;
  for (;;) {
    const void* found = std::memchr(buffer_.data() + searched_, '\n', end_ - searched_);
    if (found != nullptr) {
      const auto line_end =
          static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
      const std::string_view line(buffer_.data() + begin_, line_end - begin_);
      begin_ = searched_ = line_end + 1;
      return line;
    }
    searched_ = end_;
    if (fill()) continue;
    if (begin_ == end_) return std::nullopt;
    const std::string_view line(buffer_.data() + begin_, end_ - begin_);
    begin_ = searched_ = end_;
    return line;
  }
}

std::size_t LineSource::readable(std::string_view line) const {
  return static_cast<std::size_t>(buffer_.data() + buffer_.size() - line.data());
}

}  // namespace remat
