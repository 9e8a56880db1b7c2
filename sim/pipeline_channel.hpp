#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace remat {

/// How messages go from rank to rank. Source: pipelines.md §4.
enum class ChannelKind : std::uint8_t {
  async,       // a send never waits; a receive waits for its message
  rendezvous,  // a send waits for its receive as a receive for its send
  eager,       // as async, but a send waits while `depth` messages to that rank are not received
  pair_fifo,   // sends and receives are queued and the rank goes on; a message passes when it is
               // the first of both ends' queues, of which a rank has one for each other rank
  dir_fifo,    // the same with two for each other rank, forwards and gradients
  one_fifo     // the same with one in all
};

struct Channel {
  ChannelKind kind = ChannelKind::async;
  std::int64_t depth = 1;  // of eager
};

/// Messages are queued; what uses one waits for it, not the rank as it comes by.
constexpr bool is_fifo(ChannelKind kind) {
  return kind >= ChannelKind::pair_fifo;
}

constexpr std::string_view known_channels =
    "async, rendezvous, eager-K (K at least 1), pair-fifo, dir-fifo, one-fifo";

/// The channel of that name; none where there is no such.
std::optional<Channel> channel_named(std::string_view name);

}  // namespace remat
