#include "traces/names.hpp"

#include <algorithm>

#include "traces/short_text.hpp"

namespace remat {
namespace {

constexpr std::size_t block_bytes = std::size_t{16} << 10U;

}  // namespace

std::size_t NameTable::cell_of(std::string_view spelling) const {
  std::size_t at = text_bits(spelling) & (cells_.size() - 1);
  while (cells_[at] != empty && !same_text(spellings_[cells_[at]], spelling))
    at = (at + 1) & (cells_.size() - 1);
  return at;
}

std::string_view NameTable::keep(std::string_view spelling) {
  if (block_size_ - block_used_ < spelling.size()) {
    block_size_ = std::max(block_bytes, spelling.size());
    block_used_ = 0;
    block_bytes_ += block_size_;
    blocks_.push_back(std::make_unique<char[]>(block_size_));
  }
  if (spelling.empty()) return {};
  char* const at = blocks_.back().get() + block_used_;
  std::copy(spelling.begin(), spelling.end(), at);
  block_used_ += spelling.size();
  return {at, spelling.size()};
}

void NameTable::grow() {
  cells_.assign(cells_.size() * 2, empty);
  for (std::size_t i = 0; i < spellings_.size(); ++i)
    cells_[cell_of(spellings_[i])] = static_cast<std::uint32_t>(i);
}

NameId NameTable::intern(std::string_view spelling) {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] != empty) return NameId(cells_[at]);
  const auto id = static_cast<std::uint32_t>(spellings_.size());
  spellings_.push_back(keep(spelling));
  cells_[at] = id;
  if (spellings_.size() * 2 > cells_.size()) grow();
  return NameId(id);
}

std::optional<NameId> NameTable::find(std::string_view spelling) const {
  const std::size_t at = cell_of(spelling);
  if (cells_[at] == empty) return std::nullopt;
  return NameId(cells_[at]);
}

std::size_t NameTable::bytes_in_memory() const {
  return spellings_.capacity() * sizeof(std::string_view) +
         cells_.capacity() * sizeof(std::uint32_t) + block_bytes_;
}

}  // namespace remat
