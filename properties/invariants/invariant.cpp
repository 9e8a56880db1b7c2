#include "properties/invariants/invariant.hpp"

#include <algorithm>

namespace remat {

void Report::found(std::string_view invariant, std::int64_t seq, std::string message,
                   std::vector<std::int64_t> events) {
  last_found_seq_ = std::max(last_found_seq_.value_or(seq), seq);
  Tally& tally = tallies_[std::string(invariant)];
  tally.last_seq = std::max(tally.last_seq, seq);
  if (++tally.n_found > findings_max) return;
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  findings_.push_back({std::string(invariant), seq, std::move(message), std::move(events)});
}

void Report::not_checked(std::string_view invariant, std::string needs) {
  unchecked_.push_back({std::string(invariant), std::move(needs)});
}

bool Report::found_since(std::string_view invariant, std::int64_t seq) const {
  const auto found = tallies_.find(invariant);
  return found != tallies_.end() && found->second.last_seq >= seq;
}

std::int64_t Report::n_left_out(std::string_view invariant) const {
  const auto found = tallies_.find(invariant);
  if (found == tallies_.end()) return 0;
  return std::max<std::int64_t>(0, found->second.n_found - findings_max);
}

}  // namespace remat
