#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "model/flat_map.hpp"

namespace remat {

/// When something was released.
struct ReleaseMoment {
  std::int64_t seq = 0;
  bool is_exact = true;  // false: at some event before that one
};

/// Which of many things, named by integers, were released. Only of the last ones is the event
/// known, so that a long trace costs a few bits for each thing that it ever had.
class ReleaseLog {
 public:
  static constexpr std::size_t n_remembered = 4096;

  /// The thing is released now; `seq` never decreases. Returns another one that was released so
  /// long ago that from now on only this is known of it.
  std::optional<std::int64_t> add(std::int64_t id, std::int64_t seq) {
    released_.insert(id);
    seqs_[id] = seq;
    order_.push_back({id, seq});
    return order_.size() > n_remembered ? forget_the_oldest() : std::nullopt;
  }
  /// It lives again.
  void remove(std::int64_t id) {
    released_.erase(id);
    seqs_.erase(id);
  }
  bool contains(std::int64_t id) const { return released_.contains(id); }
  std::optional<ReleaseMoment> find(std::int64_t id) const {
    if (!contains(id)) return std::nullopt;
    if (const std::int64_t* seq = seqs_.find(id)) return ReleaseMoment{*seq, true};
    return ReleaseMoment{order_.front().seq, false};
  }

 private:
  struct Entry {
    std::int64_t id = 0;
    std::int64_t seq = 0;
  };

  std::optional<std::int64_t> forget_the_oldest() {
    const Entry oldest = order_.front();
    order_.pop_front();
    const std::int64_t* seq = seqs_.find(oldest.id);
    if (seq == nullptr || *seq != oldest.seq) return std::nullopt;
    seqs_.erase(oldest.id);
    return oldest.id;
  }

  IdSet released_;
  FlatMap<std::int64_t> seqs_;  // of those remembered
  std::deque<Entry> order_;     // oldest first; stale where it has lived since
};

}  // namespace remat
