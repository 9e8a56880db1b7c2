#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "model/id.hpp"

namespace remat {

using NameId = Id<struct NameTag>;

/// Strings by number: each spelling is kept once, ids are given in the order of first use. A view
/// of a spelling lives as long as the table, also where that is moved.
class NameTable {
 public:
  NameTable() = default;
  NameTable(NameTable&&) noexcept = default;
  NameTable& operator=(NameTable&&) noexcept = default;
  NameId intern(std::string_view spelling);
  std::optional<NameId> find(std::string_view spelling) const;
  std::string_view operator[](NameId id) const { return spelling(places_[id.index()]); }
  std::size_t size() const { return places_.size(); }
  std::size_t bytes_in_memory() const;

 private:
  /// Where a spelling lies: its block, and the byte in it at which its length begins. Four bytes
  /// instead of a view's sixteen: a long trace may have a name for each slot.
  using Place = std::uint32_t;
  static constexpr unsigned offset_bits = 16;
  static constexpr std::size_t block_bytes = std::size_t{1} << offset_bits;

  std::string_view spelling(Place place) const;
  std::size_t cell_of(std::string_view spelling) const;
  Place keep(std::string_view spelling);
  void grow();

  static constexpr std::uint32_t empty = 0xffffffff;
  std::deque<Place> places_;  // by id
  std::vector<std::uint32_t> cells_ = std::vector<std::uint32_t>(256, empty);
  std::vector<std::unique_ptr<char[]>>
      blocks_;                  // never reallocated, so that the views into them stay
  std::size_t block_used_ = 0;  // of the last block
  std::size_t block_size_ = 0;
  std::size_t block_bytes_ = 0;  // of all of them
};

}  // namespace remat
