#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "properties/campaign.hpp"

namespace remat {

/// The digest of the first `cases` cases of a seed, as one way of running them gives it.
using DigestOf = std::function<std::string(std::uint64_t cases)>;

/// That of campaigns with these options, whatever fails in them.
DigestOf digest_of(CampaignOptions options);

/// The first case on which two ways of running the same cases differ; none where all `cases` agree.
/// A way that does not agree with itself may lead to any case that differs.
std::optional<std::uint64_t> first_differing_case(const DigestOf& one, const DigestOf& other,
                                                  std::uint64_t cases);

}  // namespace remat
