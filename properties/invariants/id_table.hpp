#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "model/flat_map.hpp"

namespace remat {

/// Integer ids → integers, sixteen neighbours to a page: dense ids cost about five bytes each where
/// what they map to lies within 2³¹ of them, as two counters of one trace do; sparse ones about
/// ninety.
class IdTable {
 public:
  std::optional<std::int64_t> find(std::int64_t id) const {
    const std::uint32_t* page = index_.find(id >> page_bits);
    if (page == nullptr) return std::nullopt;
    const std::int32_t cell = pages_[*page][offset(id)];
    if (cell == absent) return std::nullopt;
    if (cell == far_away) return *far_.find(id);
    return id + cell;
  }
  void set(std::int64_t id, std::int64_t value) {
    std::int64_t distance = 0;
    const bool is_near = !__builtin_sub_overflow(value, id, &distance) && distance > far_away &&
                         distance <= std::numeric_limits<std::int32_t>::max();
    if (!is_near) far_[id] = value;
    pages_[page_of(id)][offset(id)] = is_near ? static_cast<std::int32_t>(distance) : far_away;
  }

 private:
  static constexpr unsigned page_bits = 4;
  static constexpr std::size_t page_size = 1U << page_bits;
  static constexpr std::int32_t absent = std::numeric_limits<std::int32_t>::min();
  static constexpr std::int32_t far_away = absent + 1;
  using Page = std::array<std::int32_t, page_size>;

  static std::size_t offset(std::int64_t id) {
    return static_cast<std::size_t>(id) & (page_size - 1);
  }
  std::uint32_t page_of(std::int64_t id) {
    if (const std::uint32_t* found = index_.find(id >> page_bits)) return *found;
    const auto page = static_cast<std::uint32_t>(pages_.size());
    pages_.emplace_back().fill(absent);
    index_[id >> page_bits] = page;
    return page;
  }

  FlatMap<std::uint32_t> index_;
  std::deque<Page> pages_;  // grows without a second copy of all that it holds
  FlatMap<std::int64_t> far_;
};

}  // namespace remat
