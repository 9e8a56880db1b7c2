#pragma once

#include <cstdint>
#include <string_view>

#include "schedules/protocols/torch.hpp"

namespace remat {

/// The example of docs/adding-a-protocol.md: a selective checkpoint that needs no marks in the
/// program. Of the calls of each op in a region the first, third, fifth … keep what they make, and
/// a replay is served it; the others run again.
class EverySecondProtocol : public TorchProtocol {
 public:
  /// What can be wrong with it, each in one line.
  enum class Fault : std::uint8_t {
    none,
    asks_again,   // a replay asks anew which calls are kept, and counts on from forward's calls
    keeps_writes  // of ops that write in place too
  };

  explicit EverySecondProtocol(Fault fault = Fault::none)
      : TorchProtocol(ProtocolOptions{}), fault_(fault) {}

  std::string_view name() const override { return "every-second"; }
  bool serves_kept_ops() const override { return true; }
  bool keeps(const KeepRequest& request) const override;
  CacheDecision cached_op(const CacheState& state) const override;
  CacheRules cache_rules() const override;

 private:
  Fault fault_;
};

}  // namespace remat
