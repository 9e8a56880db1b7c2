#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/ring.hpp"
#include "model/units.hpp"

namespace remat {

/// A rank's part in a collective. What is seen of it must live until the ranks have met.
struct CollectiveRequest {
  std::uint32_t group = 0;  // of the program's
  std::string_view name;    // of what is exchanged
  std::string_view tag;     // says where in the program, and in which phase
  std::int64_t n = 0;       // elements that it hands over
  std::uint64_t what = 0;   // of their type, and of what the op's attributes say
  Ring element;
  Duration cost;  // once all ranks are there
};

/// How it went: what each rank of the group handed over, in the group's order, and when it was
/// over; or the error that it came to.
struct Meeting {
  std::vector<Ring> elements;
  Instant end;
  std::string code;  // of protocols.md §1.2; empty: none
  std::string why;
};

/// The other ranks of a run, as one of them sees them.
class Peers {
 public:
  virtual ~Peers() = default;
  /// The rank's clock says `now`: others that are behind go first.
  virtual void pass_turn(Instant now) = 0;
  /// The rank issues its next collective of the group at `now`, and waits for the others.
  virtual Meeting meet(const CollectiveRequest& call, Instant now) = 0;
};

}  // namespace remat
