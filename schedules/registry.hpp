#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/offload_policy.hpp"
#include "schedules/protocol.hpp"
#include "schedules/protocol_fault.hpp"
#include "schedules/recompute_ratio.hpp"
#include "schedules/save_units.hpp"

namespace remat {

/// Whose rules hold where a real system is silently wrong.
enum class Compat : std::uint8_t {
  strict,      // the fault is an error
  torch,       // what torch really does
  public_code  // what the published exclusion wrapper does (observed-hyperparallel.md)
};

/// Where what excluded regions return passes a recompute boundary.
enum class BoundaryPasses : std::uint8_t {
  both,     // in forward and again in a replay, as the protocol wants
  forward,  // not in a replay
  none
};

struct ProtocolOptions {
  bool early_stop = true;
  Compat compat = Compat::strict;
  /// torch-sac under compat torch: a write to a kept output is no error (silently wrong gradients).
  bool allow_cache_entry_mutation = false;
  /// torch: the saves of a replay are compared with forward's by shape and dtype.
  bool determinism_check = true;
  /// Ambient saved-tensor hooks are active: they turn autograd's own version checks off.
  bool ambient_hooks = false;
  /// torch-sac: of the calls of an op that its policy keeps, only every n-th is kept; 0: all.
  std::int64_t keep_every = 0;
  /// Collectives that are asked for are kept; none: as the protocol has it (protocols.md A3).
  std::optional<bool> keep_collectives = std::nullopt;
  /// exclude-rederive: all but `both` is wrong, to show what boundaries are for.
  BoundaryPasses boundaries = BoundaryPasses::both;
  /// remat: state hooks keep the generator in step with a replay that leaves regions out. Without a
  /// word of it strict has them, and compat torch has not.
  std::optional<bool> state_hooks = std::nullopt;
  RecomputeRatio recompute_ratio = {};
  /// kept-ops, kept-callables, markers.
  UnitConfig units = {};
  /// Under any protocol: what the program's offload groups keep goes to the host and comes back
  /// (P11). The protocol `offload` does so without being told.
  std::optional<OffloadOptions> offload = std::nullopt;
  ProtocolFault fault = ProtocolFault::none;
};

/// What a protocol's save units may stand for; nothing: it has none.
struct UnitKinds {
  bool ops = false;
  bool callables = false;
  bool intervals = false;
  bool any() const { return ops || callables || intervals; }
};

struct ProtocolRow {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Protocol> (*make)(const ProtocolOptions& options);
  bool has_boundaries = false;  // ProtocolOptions::boundaries means something to it
  UnitKinds units = {};         // what save units may stand for under it
};

/// Every protocol that there is, in the order in which they are listed.
const std::vector<ProtocolRow>& protocols();

/// Their names, for a message: "none, torch, …".
std::string known_protocols();

/// Whether the protocol of that name is there and has recompute boundaries.
bool takes_boundaries(std::string_view name);
/// What save units may stand for under the protocol of that name; nothing where there is no such.
UnitKinds unit_kinds(std::string_view name);

/// What becomes of the program's offload groups under the protocol of that name; none where it is
/// not told to do anything with them.
std::optional<OffloadPolicy> offload_policy(std::string_view name, const ProtocolOptions& options);

/// The protocol of that name; none where there is no such.
std::unique_ptr<Protocol> make_protocol(std::string_view name, const ProtocolOptions& options);

}  // namespace remat
