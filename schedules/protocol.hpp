#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/program.hpp"

namespace remat {

class UnitPolicy;

/// What a statement says of a checkpointed region.
struct RegionTraits {
  bool reentrant = false;
  bool early_stop = true;
  std::string_view owner = {};  // the model that it is a layer of
  LayerPlace layer = {};        // among the owner's
};

/// What becomes of a checkpointed region.
enum class RegionMode : std::uint8_t {
  plain,    // its body runs as if it were no region
  holders,  // forward packs holders without tensors, a replay fills them (protocols.md P1)
  no_graph  // forward runs without a graph, backward replays it whole (P2)
};

/// Where a replay stands when it packs.
struct PackState {
  bool early_stop = true;
  bool forward_done = true;    // false: forward of the region still runs
  std::int64_t index = 0;      // of this pack in the replay
  std::int64_t n_forward = 0;  // packs of forward
};
enum class PackDecision : std::uint8_t {
  store,
  store_and_stop,  // the last one that forward made: the replay ends here
  pass,            // kept by nobody
  too_many         // E-MORE
};

/// A slot without a tensor, as one session sees it.
struct SlotState {
  bool replayed = false;    // the frame has been replayed for this session
  bool filled = false;      // that replay reached the slot
  bool handed_out = false;  // and its tensor was read already, by one who does not retain
};
enum class UnpackDecision : std::uint8_t { replay, hand_out, twice, never_filled };

/// How frames and their replays are kept.
struct FrameRules {
  bool replays_each_session = true;   // otherwise one replay serves all of them
  bool counts_dead_holders = true;    // among forward's packs, when a replay is held against them
  bool releases_when_read = true;     // what a replay refilled goes to who reads it
  bool tracks_nested_outputs = true;  // a region's outputs in containers get a gradient (P2)
  bool sets_generator = true;         // a replay draws where forward drew
  bool nests = true;                  // otherwise a region within a region is an error
};

/// How a selective policy's cache is kept.
struct CacheRules {
  bool has_queue_per_op = true;    // otherwise one for the calls of all ops
  bool restarts_counters = true;   // a replay counts calls from the first
  bool refuses_unwritten = true;   // a read of what a served collective should have written
  bool asks_policy_again = false;  // a replay asks, with counters that run on from forward's
};

/// An op call that a selective policy is asked about.
struct KeepRequest {
  bool wanted = false;     // the user's policy keeps this op
  bool writes = false;     // it writes an input in place, at least by its schema
  bool exchanges = false;  // it is a collective
  std::int64_t call = 0;   // how many calls of the op came before, as the policy counts them
};

/// A selective policy's entry for an op call, asked for in a replay.
struct CacheState {
  bool exists = false;         // forward called this op so often
  bool kept = false;           // the policy keeps its outputs
  bool consumed = false;       // an earlier replay took them
  bool written_since = false;  // a kept output was written in place
};
enum class CacheDecision : std::uint8_t { run, serve, no_entry, consumed, written };

/// How a replay that was not cut short compares with forward.
struct ReplayEnd {
  std::int64_t n_forward = 0;
  std::int64_t n_replay = 0;
  bool metadata_equal = true;
  bool surplus_passed = false;  // packs past forward's were let through
};
enum class ReplayFault : std::uint8_t { none, count, metadata };

/// How excluded regions are treated (protocols.md P3 to P6).
struct ExclusionRules {
  /// Which output leaves of a call with slots get a recompute boundary.
  enum class Boundaries : std::uint8_t { none, first_leaf, requiring_grad, all_leaves };

  bool excludes = false;       // otherwise the body is code like any other, run again in a replay
  bool nests = false;          // an excluded region within another is no error
  bool drops_outputs = false;  // where the program says so, a replay gets placeholders
  bool keeps_any_output = true;
  bool rederives = false;               // saved inputs that a replay makes again are not kept
  bool knows_by_storage = true;         // where a tensor came from; otherwise by the tensor object
  bool compares_layouts = true;         // what fills a slot with what forward packed
  bool compares_versions = true;        // likewise: of their storages
  bool compares_values = true;          // likewise: the elements (I-23)
  bool refuses_placeholders = true;     // as data, in forward and in replay
  bool restores_generator = true;       // to where the skipped body would have left it
  bool demands_all_entries = true;      // a replay that ends on its own has used every entry
  bool first_entry_first = true;        // a wrapper's calls are served in forward's order
  bool keeps_graph_of_outputs = false;  // a kept output holds on to its node
  bool fills_by_input = false;  // a call's slots in the order of its arguments, not of its saves
  Boundaries boundaries = Boundaries::requiring_grad;
  bool repeats_boundaries = true;  // in a replay, on what it is served
};

/// How regions of torch_remat are treated (protocols.md P7).
struct RematRules {
  bool handles_regions = false;    // otherwise one that is saved is an excluded region
  bool persists_on_demand = true;  // outputs that a replay will read; otherwise all of them
  bool finds_by_storage = true;    // which region made a tensor; otherwise by the tensor object
  bool hands_out_once = true;      // what a replay brings to a slot; the next replay brings it anew
  bool refuses_all_writes = true;  // to what a replay is served; otherwise those that autograd sees
};

/// A tensor that an excluded region saves, held against one of its arguments as it came in.
struct InputMatch {
  bool is_parameter = false;
  bool is_save_output = false;  // the argument came out of an excluded region of the same call
  bool same_object = false;
  bool same_storage = false;
  bool same_dtype = false;
  bool same_version = false;
  bool same_layout = false;   // shape, stride and offset
  bool is_contained = false;  // lies between the argument's first and last element
  bool is_within = false;     // likewise, and steps through it without standing still
  bool is_safe_view = false;  // which is dense, so that a replay writes all of it
  bool has_boundary = false;  // some output requires grad, so the read can drive the replay
};

/// What may have been written since it was kept.
enum class KeptThing : std::uint8_t {
  saved_tensor,  // held by autograd itself
  region_input,  // a top-level tensor argument
  captured,      // read by the body past its arguments: a parameter, a tensor in a container
  refilled,      // put in a slot by a replay
  excluded,      // saved inside an excluded region
  rederived,     // put in an excluded region's slot by a replay
  served         // an excluded region's output that a replay is served
};

/// A checkpoint protocol: pure answers, no state of its own, no knowledge of how they are carried
/// out. One file each under schedules/protocols.
class Protocol {
 public:
  Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  virtual std::string_view name() const = 0;
  virtual RegionMode region(const RegionTraits& traits) const = 0;
  /// The region's frame is cut short at its last save.
  virtual bool stops_early(const RegionTraits& traits) const = 0;
  virtual PackDecision pack(const PackState& state) const = 0;
  virtual UnpackDecision unpack(const SlotState& state) const = 0;
  virtual ReplayFault replay_ended(const ReplayEnd& end) const = 0;
  virtual FrameRules frame_rules() const = 0;
  virtual CacheRules cache_rules() const = 0;
  virtual ExclusionRules exclusion_rules() const = 0;
  virtual RematRules remat_rules() const = 0;
  /// The excluded region's saved tensor is not kept: a replay brings it to its slot.
  virtual bool rederives(const InputMatch& match) const = 0;
  /// A selective policy keeps what this call makes.
  virtual bool keeps(const KeepRequest& request) const = 0;
  /// Ops that a policy keeps are served in a replay.
  virtual bool serves_kept_ops() const = 0;
  /// What its user's save units ask for; none where it has none.
  virtual const UnitPolicy* units() const = 0;
  virtual CacheDecision cached_op(const CacheState& state) const = 0;
  /// A write since it was kept is an error when it is read.
  virtual bool checks_version_of(KeptThing thing) const = 0;
  /// What a replay refills must equal what forward packed, not only look like it.
  virtual bool checks_values() const = 0;
  /// A region that would hand some tensor no gradient, where plain code does, is an error.
  virtual bool refuses_lost_gradients() const = 0;
  /// The generator is put to where a served op would have left it.
  virtual bool restores_generator_after_served() const = 0;
};

}  // namespace remat
