#include "sim/pipeline_channel.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace remat {
namespace {

constexpr std::array<std::pair<std::string_view, ChannelKind>, 5> named = {{
    {"async", ChannelKind::async},
    {"rendezvous", ChannelKind::rendezvous},
    {"pair-fifo", ChannelKind::pair_fifo},
    {"dir-fifo", ChannelKind::dir_fifo},
    {"one-fifo", ChannelKind::one_fifo},
}};

}  // namespace

std::optional<Channel> channel_named(std::string_view name) {
  for (const auto& [channel, kind] : named) {
    if (channel == name) return Channel{.kind = kind};
  }
  constexpr std::string_view eager = "eager-";
  if (!name.starts_with(eager)) return std::nullopt;
  name.remove_prefix(eager.size());
  std::int64_t depth = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), depth);
  const bool is_whole = error == std::errc() && end == name.data() + name.size();
  if (!is_whole || depth < 1) return std::nullopt;
  return Channel{.kind = ChannelKind::eager, .depth = depth};
}

}  // namespace remat
