#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/flat_map.hpp"

namespace remat {

/// Integer ids → small numbers, sixteen neighbours to a page: dense ids cost four bytes each,
/// sparse ones about ninety.
class IdTable {
 public:
  std::optional<std::uint32_t> find(std::int64_t id) const {
    const std::uint32_t* page = index_.find(id >> page_bits);
    if (page == nullptr) return std::nullopt;
    const std::uint32_t value = pages_[*page][offset(id)];
    if (value == absent) return std::nullopt;
    return value;
  }
  void set(std::int64_t id, std::uint32_t value) {
    const std::uint32_t* found = index_.find(id >> page_bits);
    std::uint32_t page = 0;
    if (found != nullptr) {
      page = *found;
    } else {
      page = static_cast<std::uint32_t>(pages_.size());
      pages_.push_back(empty_page());
      index_[id >> page_bits] = page;
    }
    pages_[page][offset(id)] = value;
  }

 private:
  static constexpr unsigned page_bits = 4;
  static constexpr std::size_t page_size = 1U << page_bits;
  static constexpr std::uint32_t absent = 0xffffffff;
  using Page = std::array<std::uint32_t, page_size>;

  static std::size_t offset(std::int64_t id) {
    return static_cast<std::size_t>(id) & (page_size - 1);
  }
  static Page empty_page() {
    Page page{};
    page.fill(absent);
    return page;
  }

  FlatMap<std::uint32_t> index_;
  std::vector<Page> pages_;
};

}  // namespace remat
