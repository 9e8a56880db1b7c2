#pragma once

#include "schedules/protocols/torch.hpp"

namespace remat {

/// P10, torch's selective checkpoint: P1, and what ops that the policy keeps have made is served to
/// one replay, once. Source: protocols.md P10, observed-torch.md §2.
class TorchSacProtocol : public TorchProtocol {
 public:
  using TorchProtocol::TorchProtocol;
  std::string_view name() const override { return "torch-sac"; }
  bool keeps(const KeepRequest& request) const override;
  bool serves_kept_ops() const override { return true; }
  CacheDecision cached_op(const CacheState& state) const override;

 protected:
  /// As torch does unless told otherwise.
  virtual bool keeps_collectives() const { return options().keep_collectives.value_or(true); }
};

std::unique_ptr<Protocol> make_torch_sac(const ProtocolOptions& options);

}  // namespace remat
