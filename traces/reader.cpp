#include "traces/whole_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/errors.hpp"
#include "traces/event_parser.hpp"
#include "traces/line_error.hpp"
#include "traces/line_source.hpp"
#include "traces/reference_check.hpp"
#include "traces/shown.hpp"
#include "traces/whole_text.hpp"

namespace remat {
namespace {

std::unique_ptr<ByteSource> opened(const std::string& path) {
  try {
    return open_bytes(path);
  } catch (const SourceError& error) {
    throw InputError(
        fmt::format("{}: {}; expected a trace (JSON Lines, plain or gzip)", path, error.what()));
  }
}

}  // namespace

class TraceReader::Impl {
 public:
  Impl(std::unique_ptr<ByteSource> source, std::string shown_name)
      : shown_name_(std::move(shown_name)), lines_(std::move(source), simdjson::SIMDJSON_PADDING) {}

  std::size_t read(Trace& into, std::size_t events_max) {
    std::size_t n = 0;
    try {
      while (n < events_max && read_one(into))
        ++n;
    } catch (const LineError& error) {
      fail(error.what());
    } catch (const TraceTooLarge& error) {
      fail(error.what());
    } catch (const SourceError& error) {
      // The bytes fail behind the line that was read last.
      throw InputError(fmt::format("{}:{}: {}; expected the rest of the trace", shown_name_,
                                   std::max<std::int64_t>(lines_.line_number(), 1), error.what()));
    }
    return n;
  }

  const std::string& shown_name() const { return shown_name_; }
  const UnknownCounts& unknown() const { return unknown_; }

 private:
  bool read_one(Trace& into) {
    const auto line = lines_.next();
    if (!line) {
      if (previous_seq_ < 0)
        throw InputError(shown_name_ + ": the file is empty; expected a header line");
      return false;
    }
    parser_.parse(*line, lines_.readable(*line), into, unknown_);
    const EventView event = into[into.size() - 1];
    if (previous_seq_ < 0) {
      check_header(event);
    } else {
      check_order(event);
    }
    previous_seq_ = event.seq();
    if (const auto wrong = references_.observe(event)) fail(*wrong);
    return true;
  }

  void check_header(const EventView& event) const {
    if (event.kind() != Kind::header) {
      fail(fmt::format("the first event is of kind '{}' (at /kind); expected a header",
                       shown(event.kind_name())));
    }
    if (!event.has(Field::format))
      fail("the header has no format; expected \"ckpt-trace\" (at /format)");
    if (event.text(Field::format) != format_name) {
      fail(fmt::format("unknown format '{}' (at /format); expected \"{}\"",
                       shown(event.text(Field::format)), format_name));
    }
    const auto version = event.integer(Field::version);
    if (!version) fail("the header has no version; expected 1 (at /version)");
    if (*version > format_version) {
      fail(fmt::format("version {} is newer than this program (at /version); expected {}", *version,
                       format_version));
    }
    if (*version < format_version) {
      fail(fmt::format("version {} does not exist (at /version); expected {}", *version,
                       format_version));
    }
    if (event.seq() != 0)
      fail(fmt::format("the header's seq is {} (at /seq); expected 0", event.seq()));
  }

  void check_order(const EventView& event) const {
    if (event.kind() == Kind::header)
      fail("a second header (at /kind); expected one, on the first line");
    if (event.seq() <= previous_seq_) {
      fail(fmt::format("seq {} does not increase (at /seq); expected more than {}", event.seq(),
                       previous_seq_));
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}", shown_name_, lines_.line_number(), what));
  }

  std::string shown_name_;
  LineSource lines_;
  EventParser parser_;
  ReferenceCheck references_;
  UnknownCounts unknown_;
  std::int64_t previous_seq_ = -1;
};

TraceReader::TraceReader(const std::string& path) : TraceReader(opened(path), shown_path(path)) {}
TraceReader::TraceReader(std::unique_ptr<ByteSource> source, std::string shown_name)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(shown_name))) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

std::size_t TraceReader::read(Trace& into, std::size_t events_max) {
  return impl_->read(into, events_max);
}
const std::string& TraceReader::shown_name() const {
  return impl_->shown_name();
}
const UnknownCounts& TraceReader::unknown() const {
  return impl_->unknown();
}

Trace read_trace(const std::string& path) {
  Trace trace;
  TraceReader reader(path);
  while (reader.read(trace, std::numeric_limits<std::size_t>::max()) > 0) {
  }
  trace.shrink_to_fit();
  return trace;
}

}  // namespace remat
