#pragma once

#include <cstdint>
#include <optional>

#include "model/flat_map.hpp"
#include "properties/invariants/facts.hpp"
#include "properties/invariants/invariant.hpp"

namespace remat {

/// The part of rng_position that goes by the random state's checksum at the exits of excluded
/// regions: rule N3 of docs/trace-format.md.
class SkippedDraws {
 public:
  /// Another call begins: its exit will tell where the generator is.
  void enter(const Facts& facts);
  void exit(const EventView& event, const Facts& facts);
  /// Of an op: it draws while the generator is not where forward's was.
  bool is_off(const EventView& event, const Facts& facts) const;
  void tell(const EventView& event, const Facts& facts, Report& report) const;
  void end_replay(std::int64_t scope);
  void end_step() { off_.clear(); }

 private:
  /// The call whose skipped body drew in forward.
  struct Off {
    NameId wrapper{0};
    std::optional<std::int64_t> call;
    std::int64_t exit_seq = 0;
    std::int64_t forward_seq = 0;
  };

  FlatMap<Off> off_;  // replay → since which call its generator is off
};

}  // namespace remat
