#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace remat {

/// One collective call, as its rank issued it.
struct CollectiveCall {
  std::optional<NameId> name;
  std::optional<NameId> tag;
  std::optional<std::int64_t> n;
  std::int64_t rank = 0;
  std::int64_t seq = 0;

  /// Equal in what both sides recorded.
  bool agrees_with(const CollectiveCall& other) const;
};

/// The calls of one group: the k-th call of every rank is the same collective (D1).
class CollectiveGroup {
 public:
  /// Takes the rank's next call; the first rank's call of the same number where the two disagree.
  std::optional<CollectiveCall> issue(const CollectiveCall& call);
  /// Rank → how many calls it has issued.
  const std::map<std::int64_t, std::int64_t>& issued() const { return issued_; }
  /// From here on nothing is compared if the ranks have issued unequal numbers of calls.
  void part_if_uneven();
  /// Some two ranks disagreed: their numbers mean nothing any more.
  bool is_mismatched() const { return mismatched_; }
  /// The first call that any rank issued as the group's `number`-th, if it is still known.
  std::optional<CollectiveCall> call(std::int64_t number) const;

 private:
  void forget_what_all_have_passed();
  void forget_what_nobody_else_reaches();

  std::map<std::int64_t, std::int64_t> issued_;
  std::vector<CollectiveCall> calls_;  // from call number `first_` on
  std::int64_t first_ = 0;
  bool mismatched_ = false;
};

CollectiveCall collective_call(const EventView& event);

}  // namespace remat
