#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "properties/invariants/collective_book.hpp"
#include "traces/trace.hpp"

namespace remat {

/// (from, to, tag)
using Channel = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

/// What the ranks issued in one step, each in its own order, where all of it was answered by
/// number: whether it can also be answered in that order. A collective waits for all ranks that
/// issue it, a receive for its send; a send does not wait.
class WaitCycle {
 public:
  /// A rank that waits, and for whom.
  struct Wait {
    std::int64_t rank = 0;
    std::int64_t seq = 0;
    std::optional<NameId> what;  // the collective; none for a receive
    std::int64_t for_rank = 0;
  };

  void collective(std::uint32_t group, const CollectiveCall& call);
  void message(const Channel& channel, bool is_send, std::int64_t seq);

  /// Ranks that wait for each other in a circle, beginning with the lowest; empty where everything
  /// is answered.
  std::vector<Wait> find() const;
  /// Begins the next step: what was sent and not received stays on its way.
  void begin_step();
  /// The step held more than is kept: nothing can be said about it.
  bool is_too_long() const { return n_calls_ == calls_max; }

 private:
  static constexpr std::size_t calls_max = std::size_t{1} << 20;

  struct Call {
    bool is_collective = false;
    std::uint32_t place = 0;  // group, or row of `channels_`
    std::int64_t number = 0;  // of the rank's calls in the group, of the messages on the channel
    std::int64_t seq = 0;
    std::optional<NameId> name;
    bool is_send = false;
  };
  struct Progress;

  std::map<std::int64_t, std::vector<Call>> calls_;                        // rank → in its order
  std::map<std::pair<std::int64_t, std::uint32_t>, std::int64_t> issued_;  // (rank, group)
  std::map<Channel, std::uint32_t> channel_rows_;
  std::vector<Channel> channels_;
  std::map<Channel, std::int64_t> under_way_;                        // sent in an earlier step
  std::map<std::pair<std::uint32_t, bool>, std::int64_t> messages_;  // (channel, is it a send)
  std::size_t n_calls_ = 0;
};

}  // namespace remat
