#pragma once

#include <memory>

#include "schedules/registry.hpp"

namespace remat {

/// P1, torch's non-reentrant checkpoint: forward packs holders, the first unpack for a session
/// replays the region, a replay ends at forward's last pack. Source: protocols.md P1,
/// observed-torch.md §1.
class TorchProtocol : public Protocol {
 public:
  explicit TorchProtocol(const ProtocolOptions& options) : options_(options) {}

  std::string_view name() const override { return "torch"; }
  RegionMode region(const RegionTraits& traits) const final;
  bool stops_early(const RegionTraits& traits) const override;
  PackDecision pack(const PackState& state) const override;
  UnpackDecision unpack(const SlotState& state) const override;
  ReplayFault replay_ended(const ReplayEnd& end) const override;
  FrameRules frame_rules() const override;
  CacheRules cache_rules() const override;
  ExclusionRules exclusion_rules() const override { return {}; }
  RematRules remat_rules() const override { return {}; }
  bool rederives(const InputMatch&) const override { return false; }
  bool keeps(const KeepRequest&) const override { return false; }
  bool serves_kept_ops() const override { return false; }
  const UnitPolicy* units() const override { return nullptr; }
  CacheDecision cached_op(const CacheState& state) const override;
  bool checks_version_of(KeptThing thing) const override;
  bool checks_values() const override { return is_strict(); }
  bool refuses_lost_gradients() const override { return is_strict(); }
  bool restores_generator_after_served() const override;

 protected:
  /// What becomes of a layer that is checkpointed.
  virtual RegionMode layer(const RegionTraits& traits) const;
  const ProtocolOptions& options() const { return options_; }
  bool is_strict() const { return options_.compat == Compat::strict; }
  bool has_state_hooks() const { return options_.state_hooks.value_or(is_strict()); }
  BoundaryPasses boundaries() const { return options_.boundaries; }
  bool has(ProtocolFault fault) const { return options_.fault == fault; }

 private:
  ProtocolOptions options_;
};

std::unique_ptr<Protocol> make_torch(const ProtocolOptions& options);

}  // namespace remat
