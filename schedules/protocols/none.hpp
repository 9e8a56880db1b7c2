#pragma once

#include "schedules/protocols/torch.hpp"

namespace remat {

/// No checkpointing: regions are plain code. The reference that every other protocol is held
/// against.
class NoProtocol : public TorchProtocol {
 public:
  using TorchProtocol::TorchProtocol;
  std::string_view name() const override { return "none"; }

 protected:
  RegionMode layer(const RegionTraits&) const override { return RegionMode::plain; }
};

std::unique_ptr<Protocol> make_none(const ProtocolOptions& options);

}  // namespace remat
