#pragma once

#include "schedules/protocols/torch_sac.hpp"
#include "schedules/save_units.hpp"

namespace remat {

/// What the protocols of save units share: torch's selective checkpoint, whose policy asks the
/// units (protocols.md P8, P9).
class SaveUnitProtocol : public TorchSacProtocol {
 public:
  SaveUnitProtocol(const ProtocolOptions& options, UnitRules rules);

  FrameRules frame_rules() const override;
  const UnitPolicy* units() const override { return &units_; }

 protected:
  RegionMode layer(const RegionTraits& traits) const override;
  /// Never, unless told otherwise: a replay would skip it on this rank, whatever others do.
  bool keeps_collectives() const override { return options().keep_collectives.value_or(false); }

 private:
  UnitPolicy units_;
};

}  // namespace remat
