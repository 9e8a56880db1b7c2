#pragma once

#include <memory>

#include "schedules/protocols/torch.hpp"

namespace remat {

/// P3, the exclusion wrapper that keeps what its body saves and what it returns: a replay skips the
/// body and is served forward's outputs, first in first out, once in the life of a frame. Source:
/// protocols.md P3, §2.12; observed-hyperparallel.md §3.1 under compat public.
class ExcludeProtocol : public TorchProtocol {
 public:
  using TorchProtocol::TorchProtocol;

  std::string_view name() const override { return "exclude"; }
  ExclusionRules exclusion_rules() const override;
  bool checks_version_of(KeptThing thing) const override;
};

std::unique_ptr<Protocol> make_exclude(const ProtocolOptions& options);

}  // namespace remat
