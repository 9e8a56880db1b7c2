#pragma once

#include "schedules/protocols/torch.hpp"

namespace remat {

/// P2, torch's reentrant checkpoint: forward without a graph, one whole replay with an inner
/// backward for each backward that comes by. Source: protocols.md P2, observed-torch.md §1.
class TorchReentrantProtocol : public TorchProtocol {
 public:
  using TorchProtocol::TorchProtocol;
  std::string_view name() const override { return "torch-reentrant"; }
  bool stops_early(const RegionTraits&) const override { return false; }

 protected:
  RegionMode layer(const RegionTraits&) const override { return RegionMode::no_graph; }
};

std::unique_ptr<Protocol> make_torch_reentrant(const ProtocolOptions& options);

}  // namespace remat
