#pragma once

#include <cstddef>
#include <cstdint>
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
  std::string_view operator[](NameId id) const { return spelling(place(id.index())); }
  std::size_t size() const { return n_places_; }
  std::size_t bytes_in_memory() const;

 private:
  /// Where a spelling lies: its block, and the byte in it at which its length begins. Four bytes
  /// instead of a view's sixteen: a long trace may have a name for each slot.
  using Place = std::uint32_t;
  static constexpr unsigned offset_bits = 16;
  static constexpr std::size_t block_bytes = std::size_t{1} << offset_bits;

  Place place(std::size_t id) const { return places_[id >> stretch_bits][id & (stretch_size - 1)]; }
  /// A length is one byte; from this one on, eight bytes after it.
  static constexpr unsigned char long_length = 255;
  std::string_view spelling(Place place) const {
    const char* const at = blocks_[place >> offset_bits].get() + (place & (block_bytes - 1));
    const auto length = static_cast<unsigned char>(*at);
    return length < long_length ? std::string_view(at + 1, length) : long_spelling(at + 1);
  }
  static std::string_view long_spelling(const char* at);
  std::size_t cell_of(std::string_view spelling) const;
  Place keep(std::string_view spelling);
  void grow();

  static constexpr std::uint32_t empty = 0xffffffff;
  // By id, in stretches that never move: a growing table is never in memory twice.
  static constexpr unsigned stretch_bits = 12;
  static constexpr std::size_t stretch_size = std::size_t{1} << stretch_bits;
  std::vector<std::unique_ptr<Place[]>> places_;
  std::size_t n_places_ = 0;
  std::vector<std::uint32_t> cells_ = std::vector<std::uint32_t>(256, empty);
  std::vector<std::unique_ptr<char[]>>
      blocks_;                  // never reallocated, so that the views into them stay
  std::size_t block_used_ = 0;  // of the last block
  std::size_t block_size_ = 0;
  std::size_t block_bytes_ = 0;  // of all of them
};

}  // namespace remat
