#include "traces/names.hpp"

#include <algorithm>
#include <cstring>

#include "model/errors.hpp"
#include "traces/short_text.hpp"

namespace remat {
namespace {

// A length is one byte; from this one on, eight bytes after it.
constexpr unsigned char long_length = 255;

std::size_t length_bytes(std::size_t length) {
  return length < long_length ? 1 : 1 + sizeof(std::uint64_t);
}

}  // namespace

std::string_view NameTable::spelling(Place place) const {
  const char* const at = blocks_[place >> offset_bits].get() + (place & (block_bytes - 1));
  const auto length = static_cast<unsigned char>(*at);
  if (length < long_length) return {at + 1, length};
  return {at + length_bytes(long_length), static_cast<std::size_t>(eight_bytes(at + 1))};
}

std::size_t NameTable::cell_of(std::string_view spelling) const {
  std::size_t at = text_bits(spelling) & (cells_.size() - 1);
  while (cells_[at] != empty && !same_text((*this)[NameId(cells_[at])], spelling))
    at = (at + 1) & (cells_.size() - 1);
  return at;
}

NameTable::Place NameTable::keep(std::string_view spelling) {
  const std::size_t n_bytes = length_bytes(spelling.size()) + spelling.size();
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
  for (std::size_t i = 0; i < places_.size(); ++i)
    cells_[cell_of(spelling(places_[i]))] = static_cast<std::uint32_t>(i);
}

NameId NameTable::intern(std::string_view spelling) {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] != empty) return NameId(cells_[at]);
  const auto id = static_cast<std::uint32_t>(places_.size());
  places_.push_back(keep(spelling));
  cells_[at] = id;
  if (places_.size() * 4 > cells_.size() * 3) grow();
  return NameId(id);
}

std::optional<NameId> NameTable::find(std::string_view spelling) const {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] == empty) return std::nullopt;
  return NameId(cells_[at]);
}

std::size_t NameTable::bytes_in_memory() const {
  return places_.size() * sizeof(Place) + cells_.capacity() * sizeof(std::uint32_t) + block_bytes_;
}

}  // namespace remat
