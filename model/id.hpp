#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace remat {

/// A strong index into one table: made only from an index, compared, never computed with. Absence
/// is std::optional.
template <typename Tag>
class Id {
 public:
  constexpr explicit Id(std::uint32_t index) : index_(index) {}
  constexpr std::uint32_t index() const { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t index_;
};

/// A table that only its own id can index. Ids are dense and given in the order of `push_back`.
template <typename IdType, typename Row>
class IdVector {
 public:
  IdType push_back(Row row) {
    rows_.push_back(std::move(row));
    return IdType(static_cast<std::uint32_t>(rows_.size() - 1));
  }
  Row& operator[](IdType id) { return rows_[id.index()]; }
  const Row& operator[](IdType id) const { return rows_[id.index()]; }
  std::size_t size() const { return rows_.size(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  std::vector<Row> rows_;
};

}  // namespace remat
