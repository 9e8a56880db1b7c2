#include <array>

#include "sim/event_log.hpp"

// Streams, and the copies that take saved tensors off the device and back (protocols.md P11).

namespace remat {

std::string_view copy_stream(MemoryLevel level, bool is_out) {
  constexpr std::array<std::string_view, memory_level_count> out = {"host_out", "disk_out"};
  constexpr std::array<std::string_view, memory_level_count> in = {"host_in", "disk_in"};
  return (is_out ? out : in)[static_cast<std::size_t>(level)];
}

void EventLog::launch(std::string_view stream, std::string_view name,
                      std::span<const std::int64_t> reads, std::span<const std::int64_t> writes) {
  if (!begin()) return;
  trace_->add_name(Field::stream, stream);
  trace_->add_name(Field::name, name);
  trace_->add_list(Field::reads, reads);
  trace_->add_list(Field::writes, writes);
  end(Kind::launch);
}

void EventLog::stream_event(Kind kind, std::string_view stream, std::string_view event) {
  if (!begin()) return;
  trace_->add_name(Field::stream, stream);
  trace_->add_name(Field::event, event);
  end(kind);
}

void EventLog::copy(Kind kind, std::int64_t storage, MemoryLevel level, bool is_out) {
  if (!begin()) return;
  trace_->add(Field::storage, storage);
  trace_->add_name(Field::direction, is_out ? "d2h" : "h2d");
  trace_->add_name(Field::stream, copy_stream(level, is_out));
  end(kind);
}

}  // namespace remat
