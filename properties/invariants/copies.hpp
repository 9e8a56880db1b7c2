#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "properties/invariants/release_log.hpp"
#include "properties/invariants/storages.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Where the bytes of an offloaded storage are.
enum class Whereabouts : std::uint8_t { device, on_the_way_out, away, on_the_way_in };
/// "on the device", "on its way out", …
std::string_view name_of(Whereabouts whereabouts);

/// One end of a copy, as a copy_begin or copy_end tells it.
struct CopyStep {
  StorageId storage{0};
  bool begins = false;
  bool is_out = false;  // to the host; otherwise back to the device

  /// The storage must be there before, and is there after.
  Whereabouts before() const;
  Whereabouts after() const;
};
/// None where the event tells no storage, or a direction that is none.
std::optional<CopyStep> copy_step(const EventView& event);

/// A storage that is not on the device, or not whole.
struct Absence {
  Whereabouts whereabouts = Whereabouts::device;
  ReleaseMoment since;  // it is in that copy, or that one took it away
};

/// Which storages copies to the host have taken away and not brought back (O1). Of those that have
/// been away for long it knows no more than that: nothing tells when one of them dies.
class CopyBook {
 public:
  /// None: the storage is on the device.
  std::optional<Absence> absence(StorageId storage) const;
  Whereabouts whereabouts(StorageId storage) const;
  void take(const CopyStep& step, std::int64_t seq);

 private:
  std::map<StorageId, Absence> on_the_way_;
  ReleaseLog away_;
};

}  // namespace remat
