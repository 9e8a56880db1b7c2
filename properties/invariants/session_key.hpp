#pragma once

#include <cstdint>
#include <optional>

#include "traces/trace.hpp"

namespace remat {

/// The session of an event (S1), whether the trace gave it as `gid` or as the number of a graph
/// task.
class SessionKey {
 public:
  static SessionKey of_graph_task(std::int64_t number) { return SessionKey(number * 2); }
  static SessionKey of(SessionId id, const Trace& trace) {
    const SessionName& name = trace.session(id);
    if (name.number && trace.names()[name.kind] == "graph_task") return of_graph_task(*name.number);
    return SessionKey(static_cast<std::int64_t>(id.index()) * 2 + 1);
  }
  std::optional<SessionId> named() const {
    if ((bits_ & 1) == 0) return std::nullopt;
    return SessionId(static_cast<std::uint32_t>(bits_ / 2));
  }
  std::int64_t graph_task() const { return bits_ / 2; }
  std::int64_t bits() const { return bits_; }
  friend bool operator==(SessionKey, SessionKey) = default;

 private:
  explicit SessionKey(std::int64_t bits) : bits_(bits) {}
  std::int64_t bits_;
};

}  // namespace remat
