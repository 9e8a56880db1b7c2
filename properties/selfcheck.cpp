#include "properties/selfcheck.hpp"

namespace remat {

std::optional<std::uint64_t> first_differing_case(const DigestOf& one, const DigestOf& other,
                                                  std::uint64_t cases) {
  if (one(cases) == other(cases)) return std::nullopt;
  std::uint64_t agree = 0;       // so many first cases give one digest
  std::uint64_t differ = cases;  // and so many do not
  while (differ - agree > 1) {
    const std::uint64_t middle = agree + (differ - agree) / 2;
    (one(middle) == other(middle) ? agree : differ) = middle;
  }
  return agree;
}

}  // namespace remat
