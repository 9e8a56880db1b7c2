#include "properties/invariants/invariant.hpp"

#include <algorithm>

namespace remat {

void Report::found(std::string_view invariant, std::int64_t seq, std::string message,
                   std::vector<std::int64_t> events) {
  last_found_seq_ = std::max(last_found_seq_.value_or(seq), seq);
  if (findings_.size() == findings_max) {
    ++n_left_out_;
    return;
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  findings_.push_back({std::string(invariant), seq, std::move(message), std::move(events)});
}

void Report::not_checked(std::string_view invariant, std::string needs) {
  unchecked_.push_back({std::string(invariant), std::move(needs)});
}

bool Report::found_since(std::string_view invariant, std::int64_t seq) const {
  return std::any_of(findings_.rbegin(), findings_.rend(), [&](const Finding& finding) {
    return finding.seq >= seq && finding.invariant == invariant;
  });
}

}  // namespace remat
