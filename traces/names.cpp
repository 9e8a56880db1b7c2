#include "traces/names.hpp"

#include <algorithm>
#include <cstring>

#include "model/errors.hpp"
#include "traces/short_text.hpp"

namespace remat {
namespace {

/// Half full at most, where look-ups are to be fast; a large table is fuller, to be small.
std::size_t fullness_max(std::size_t n_cells) {
  constexpr std::size_t large = std::size_t{1} << 22U;
  return n_cells < large ? n_cells / 2 : n_cells / 4 * 3;
}

}  // namespace

std::string_view NameTable::long_spelling(const char* at) {
  return {at + sizeof(std::uint64_t), static_cast<std::size_t>(eight_bytes(at))};
}

std::size_t NameTable::cell_of(std::string_view spelling) const {
  std::size_t at = text_bits(spelling) & (cells_.size() - 1);
  while (cells_[at] != empty && !same_text((*this)[NameId(cells_[at])], spelling))
    at = (at + 1) & (cells_.size() - 1);
  return at;
}

NameTable::Place NameTable::keep(std::string_view spelling) {
  const std::size_t n_bytes =
      (spelling.size() < long_length ? 1 : 1 + sizeof(std::uint64_t)) + spelling.size();
  if (block_size_ - block_used_ < n_bytes) {
    constexpr std::size_t blocks_max = std::size_t{1} << (32 - offset_bits);
    if (blocks_.size() == blocks_max)
      throw InputError("more than 4 GiB of different names; expected a trace that fits in memory");
    block_size_ = std::max(block_bytes, n_bytes);
    block_used_ = 0;
    block_bytes_ += block_size_;
    blocks_.push_back(std::make_unique<char[]>(block_size_));
  }
  char* at = blocks_.back().get() + block_used_;
  const auto place = static_cast<Place>(((blocks_.size() - 1) << offset_bits) | block_used_);
  *at++ = static_cast<char>(std::min<std::size_t>(spelling.size(), long_length));
  if (spelling.size() >= long_length) {
    const std::uint64_t length = spelling.size();
    std::memcpy(at, &length, sizeof(length));
    at += sizeof(length);
  }
  std::copy(spelling.begin(), spelling.end(), at);
  block_used_ += n_bytes;
  return place;
}

void NameTable::grow() {
  const std::size_t size = cells_.size() * 2;
  cells_ = {};  // before the new ones: the two need not be in memory together
  cells_.assign(size, empty);
  for (std::size_t i = 0; i < n_places_; ++i)
    cells_[cell_of(spelling(place(i)))] = static_cast<std::uint32_t>(i);
}

NameId NameTable::intern(std::string_view spelling) {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] != empty) return NameId(cells_[at]);
  const auto id = static_cast<std::uint32_t>(n_places_);
  const Place kept = keep(spelling);
  if (n_places_ == places_.size() * stretch_size)
    places_.push_back(std::make_unique<Place[]>(stretch_size));
  places_.back()[n_places_++ & (stretch_size - 1)] = kept;
  cells_[at] = id;
  if (n_places_ >= fullness_max(cells_.size())) grow();
  return NameId(id);
}

std::optional<NameId> NameTable::find(std::string_view spelling) const {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] == empty) return std::nullopt;
  return NameId(cells_[at]);
}

std::size_t NameTable::bytes_in_memory() const {
  return places_.size() * stretch_size * sizeof(Place) + cells_.capacity() * sizeof(std::uint32_t) +
         block_bytes_;
}

}  // namespace remat
