#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace remat {

/// One well-mixed 64-bit value for each input (SplitMix64's finaliser): spreads dense ids over a
/// table.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27U;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// The same of a text: one value on every machine, unlike a hash for tables in memory.
constexpr std::uint64_t mixed_text(std::string_view text, std::uint64_t bits = 0) {
  for (const char c : text)
    bits = mixed_bits(bits ^ static_cast<unsigned char>(c));
  return bits;
}

/// An open-addressing map from an integer id to a small value, without any order to iterate over,
/// so that no order of it can reach a result. References stay valid until the next insertion or
/// erasure.
template <typename Value>
class FlatMap {
 public:
  Value* find(std::int64_t key) {
    if (cells_.empty()) return nullptr;
    const std::size_t at = probe(key);
    return cells_[at].used ? &cells_[at].value : nullptr;
  }
  const Value* find(std::int64_t key) const { return const_cast<FlatMap*>(this)->find(key); }
  bool contains(std::int64_t key) const { return find(key) != nullptr; }

  /// The value of `key`, made by default where there was none.
  Value& operator[](std::int64_t key) {
    if ((size_ + 1) * 4 > cells_.size() * 3) grow();
    Cell& cell = cells_[probe(key)];
    if (!cell.used) {
      cell.used = true;
      cell.key = key;
      ++size_;
    }
    return cell.value;
  }

  void erase(std::int64_t key) {
    if (cells_.empty()) return;
    std::size_t hole = probe(key);
    if (!cells_[hole].used) return;
    cells_[hole] = Cell{};
    --size_;
    close_gap(hole);
  }

  std::size_t size() const { return size_; }
  /// Of the cells themselves, not of what their values own.
  std::size_t bytes_in_memory() const { return cells_.capacity() * sizeof(Cell); }
  bool empty() const { return size_ == 0; }
  void clear() {
    cells_.clear();
    size_ = 0;
  }

 private:
  struct Cell {
    std::int64_t key = 0;
    Value value{};
    bool used = false;
  };

  std::size_t home(std::int64_t key) const {
    return mixed_bits(static_cast<std::uint64_t>(key)) & (cells_.size() - 1);
  }
  std::size_t probe(std::int64_t key) const {
    std::size_t at = home(key);
    while (cells_[at].used && cells_[at].key != key)
      at = (at + 1) & (cells_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Cell> old = std::exchange(cells_, std::vector<Cell>(std::bit_ceil(size_ * 2 + 8)));
    for (Cell& cell : old)
      if (cell.used) cells_[probe(cell.key)] = std::move(cell);
  }
  // Entries behind an erased one move up where their home allows it: a search never meets a false
  // end.
  void close_gap(std::size_t hole) {
    const std::size_t mask = cells_.size() - 1;
    for (std::size_t at = (hole + 1) & mask; cells_[at].used; at = (at + 1) & mask) {
      if (((at - home(cells_[at].key)) & mask) < ((at - hole) & mask)) continue;
      cells_[hole] = std::exchange(cells_[at], Cell{});
      hole = at;
    }
  }

  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

/// A set of integer ids, 64 neighbours to a cell: dense ids cost two bits or so each.
class IdSet {
 public:
  bool contains(std::int64_t id) const {
    const std::uint64_t* word = words_.find(id >> 6);
    return word != nullptr && ((*word >> (static_cast<std::uint64_t>(id) & 63U)) & 1U) != 0;
  }
  void insert(std::int64_t id) {
    words_[id >> 6] |= 1ULL << (static_cast<std::uint64_t>(id) & 63U);
  }
  void erase(std::int64_t id) {
    if (std::uint64_t* word = words_.find(id >> 6); word != nullptr)
      *word &= ~(1ULL << (static_cast<std::uint64_t>(id) & 63U));
  }
  void clear() { words_.clear(); }

 private:
  FlatMap<std::uint64_t> words_;
};

}  // namespace remat
