#pragma once

#include <memory>

#include "schedules/protocols/torch.hpp"

namespace remat {

/// P7, torch_remat: in a checkpointed region, a region that is saved runs once and a replay is
/// served those of its outputs that it will read; what it saves of its own inputs a replay makes
/// again. A recompute boundary on each output of the checkpointed region starts every replay there,
/// and ends it there too. Source: protocols.md P7, observed-torch.md §5, torch_remat 0.2.2.
class RematProtocol : public TorchProtocol {
 public:
  using TorchProtocol::TorchProtocol;

  std::string_view name() const override { return "remat"; }
  bool stops_early(const RegionTraits& traits) const override { return !traits.reentrant; }
  ReplayFault replay_ended(const ReplayEnd& end) const override;
  FrameRules frame_rules() const override;
  ExclusionRules exclusion_rules() const override;
  RematRules remat_rules() const override;
  bool rederives(const InputMatch& match) const override;
  bool checks_version_of(KeptThing thing) const override;
};

std::unique_ptr<Protocol> make_remat(const ProtocolOptions& options);

}  // namespace remat
