#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "model/program.hpp"
#include "model/units.hpp"
#include "sim/peers.hpp"

namespace remat {

/// Where the ranks of each group meet: the k-th collective of every rank is the same one, and is
/// over when the last has come and the transfer is done. Source: protocols.md I-27.
class CollectiveBoard {
 public:
  explicit CollectiveBoard(const std::vector<RankGroup>& groups);

  /// A rank issues its next call of the group.
  struct Arrival {
    bool is_last = false;  // of the group's ranks: now `meeting` has what they came for
    Meeting meeting;       // with an error where the call is not the one that others issued
    std::vector<std::uint32_t> waiting;  // the other ranks, of the last
  };
  Arrival arrive(std::uint32_t rank, const CollectiveRequest& call, Instant now);
  /// The rank waits no longer in the call that it issued last: that one will never be over, and who
  /// comes to it is told so.
  void give_up(std::uint32_t group, std::uint32_t rank);

  /// What a rank waits for, for a message: the call, and who has not come.
  std::string awaited(std::uint32_t group, std::uint32_t rank) const;

 private:
  /// A call that not all ranks have issued.
  struct OpenCall {
    std::string name;
    std::string tag;
    std::int64_t n = 0;
    std::uint64_t what = 0;
    std::uint32_t first_rank = 0;
    std::vector<Ring> elements;  // by the place of the rank
    std::vector<bool> has_come;
    std::size_t n_come = 0;
    std::size_t n_waiting = 0;
    std::string dead;  // why it will never be over; empty: it may
    Instant latest;
    Duration cost;
  };
  struct Group {
    RankGroup ranks;
    std::vector<std::int64_t> n_issued;  // by the place of the rank
    std::int64_t n_over = 0;             // calls that all have issued
    std::deque<OpenCall> open;
  };

  static void drop_over(Group& group);
  static Meeting refused(std::string_view code, std::string why);

  std::vector<Group> groups_;
};

}  // namespace remat
