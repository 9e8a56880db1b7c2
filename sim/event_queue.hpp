#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "model/errors.hpp"
#include "model/units.hpp"

namespace remat {

/// Something that happens at an instant on one stream of one rank. What it is, only the payload's
/// reader knows.
struct Event {
  Instant when;
  std::uint32_t rank = 0;
  std::uint32_t stream = 0;
  std::uint64_t sequence = 0;  // position in the order of scheduling, unique in a run
  std::uint64_t payload = 0;
  friend constexpr bool operator==(const Event&, const Event&) = default;
};
static_assert(std::is_trivially_copyable_v<Event>);

/// Two events of one stream never trade places within one instant.
constexpr bool is_same_stream(const Event& a, const Event& b) {
  return a.rank == b.rank && a.stream == b.stream;
}

/// The order of all events: by time, rank, stream, sequence. Total, since no two share a sequence.
constexpr bool comes_before(const Event& a, const Event& b) {
  if (a.when != b.when) return a.when < b.when;
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.stream != b.stream) return a.stream < b.stream;
  return a.sequence < b.sequence;
}

/// Pending events, the first in the order of `comes_before` on top: a heap with four children a
/// node, which is half as deep as a binary one, its siblings side by side in two cache lines or
/// three. It allocates only where more events are pending than ever before or were reserved.
class EventQueue {
 public:
  void reserve(std::size_t n_events) { heap_.reserve(n_events); }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  /// The first event. There must be one.
  Event top() const {
    REMAT_INVARIANT(!heap_.empty());
    return event_of(heap_.front());
  }

  void push(const Event& event) {
    const Entry entry = entry_of(event);
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
  }

  /// Takes the first event out. There must be one.
  Event pop() {
    const Event first = top();
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return first;
  }

 private:
  static constexpr std::size_t n_children = 4;

  /// Time, rank and stream of an event as one number, which compares as they do one after another.
  __extension__ using Key = __int128;

  struct Entry {
    Key key;
    std::uint64_t sequence;
    std::uint64_t payload;
  };
  static_assert(sizeof(Entry) == 32);  // two of them fill a cache line

  static Entry entry_of(const Event& event) {
    const std::uint64_t stream = static_cast<std::uint64_t>(event.rank) << 32U | event.stream;
    return {static_cast<Key>(event.when.ns) << 64U | stream, event.sequence, event.payload};
  }
  static Event event_of(const Entry& entry) {
    const auto stream = static_cast<std::uint64_t>(entry.key);
    return {{static_cast<std::int64_t>(entry.key >> 64U)},
            static_cast<std::uint32_t>(stream >> 32U),
            static_cast<std::uint32_t>(stream),
            entry.sequence,
            entry.payload};
  }

  /// comes_before of their events. Which of two random events is the first, no processor can
  /// predict, so the common case is an arithmetic comparison and no branch: with a million pending,
  /// this halves the time per event.
  static bool is_before(const Entry& a, const Entry& b) {
    if (a.key != b.key) [[likely]]
      return a.key < b.key;
    return a.sequence < b.sequence;
  }

  /// Puts the entry in at `hole` or above, where it belongs.
  void sift_up(std::size_t hole, const Entry& entry) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / n_children;
      if (!is_before(entry, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  /// Puts the entry in at the root or below, where it belongs. The hole goes all the way down
  /// before the entry comes up from there: an entry out of the last row seldom belongs higher, so
  /// comparing with it on the way down would nearly always be in vain.
  void sift_down(const Entry& entry) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t child = n_children * hole + 1;
      if (child >= size) break;
      const std::size_t grandchild = n_children * child + 1;
      if (grandchild + n_children * n_children <= size) prefetch_grandchildren(grandchild);
      const std::size_t first =
          child + n_children <= size ? first_of_four(child) : first_of_last(child);
      heap_[hole] = heap_[first];
      hole = first;
    }
    sift_up(hole, entry);
  }

  /// The place of the first of four siblings: two matches, which do not wait for each other, and a
  /// final. The results are computed with: of a choice between two values, g++ makes a branch.
  std::size_t first_of_four(std::size_t child) const {
    const Entry* const at = heap_.data() + child;
    const std::size_t low = is_before(at[1], at[0]) ? 1 : 0;
    const std::size_t high = is_before(at[3], at[2]) ? 3 : 2;
    const std::size_t is_high = is_before(at[high], at[low]) ? 1 : 0;
    return child + low + (high - low) * is_high;
  }

  /// The same among the last siblings, where fewer than four are left.
  std::size_t first_of_last(std::size_t child) const {
    std::size_t first = child;
    for (std::size_t at = child + 1; at < heap_.size(); ++at) {
      if (is_before(heap_[at], heap_[first])) first = at;
    }
    return first;
  }

  /// A heap that fits no cache waits for memory at each level, unless all that may be needed next
  /// is asked for one level ahead.
  void prefetch_grandchildren(std::size_t grandchild) const {
    constexpr std::size_t entries_per_line = 64 / sizeof(Entry);
    for (std::size_t i = 0; i < n_children * n_children; i += entries_per_line)
      __builtin_prefetch(&heap_[grandchild + i]);
  }

  std::vector<Entry> heap_;
};

}  // namespace remat
