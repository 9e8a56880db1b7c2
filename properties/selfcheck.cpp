#include "properties/selfcheck.hpp"

#include <utility>

namespace remat {

DigestOf digest_of(CampaignOptions options) {
  options.failures_max = UINT64_MAX;
  return [options = std::move(options)](std::uint64_t cases) mutable {
    options.cases_max = cases;
    return shown_digest(run_campaign(options).digest);
  };
}

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
