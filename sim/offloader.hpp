#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/flat_map.hpp"
#include "model/program.hpp"
#include "schedules/offload_policy.hpp"
#include "sim/event_log.hpp"
#include "sim/ledger.hpp"

namespace remat {

/// Which of a forward's offload groups, in the order in which they run.
using OffloadGroup = std::size_t;
/// None where a step has no micro-batches.
using MicrobatchKey = std::optional<std::int64_t>;

/// Takes what offload groups keep for backward off the device, and back in time: copies on the
/// links of the levels, one at a time in each direction, and the waits of the compute stream for
/// them. It holds nothing alive. Source: protocols.md P11; what goes and when is the policy's.
class Offloader {
 public:
  static constexpr std::string_view compute_stream = "compute";

  Offloader(const Program& program, const OffloadPolicy& policy, const LinkRates& links,
            Ledger& ledger, EventLog& log);

  const OffloadPolicy& policy() const { return policy_; }
  /// The compute stream waits for no event of a copy back: a fault.
  void drop_waits() { drops_waits_ = true; }
  /// What the compute stream spent on waits for copies.
  Duration waited() const { return waited_; }

  /// What is kept from here on is of this micro-batch, and nothing that was kept for it before.
  void begin_forward(MicrobatchKey microbatch, std::size_t forward);
  /// The group whose OffloadBegin is that statement.
  OffloadGroup group_at(std::size_t forward, std::size_t statement) const;
  /// What is kept from here on is of this micro-batch again: of a replay, which is a fault.
  void resume(MicrobatchKey microbatch);
  /// Something is kept for backward on the tensor's storage; outside any group it must stay.
  void keep(KeptAs as, const Tensor& tensor, std::optional<OffloadGroup> group);
  /// Somebody who knows no groups will read the storage in backward.
  void hold(const Tensor& tensor) { keep_on_device(tensor.hold.storage()); }
  /// A tensor that was written since it was kept, and the group that keeps it.
  struct Written {
    ValueId value{0};
    std::string_view group;
  };
  /// The group's forward is over: what may go behind it begins to leave, unless some of it was
  /// written: then nothing has begun.
  std::optional<Written> leave(OffloadGroup group);
  /// The micro-batch's backward comes to a node of the group.
  void enter_backward(MicrobatchKey microbatch, OffloadGroup group);
  /// The micro-batch's graph is gone.
  void drop(MicrobatchKey microbatch);
  void end_step();

 private:
  /// A storage that something is kept on.
  struct Kept {
    std::uint32_t storage = 0;
    std::int64_t number = 0;
    ValueId value{0};
    std::uint32_t version = 0;  // when it was last kept
  };
  /// One that was sent.
  struct Sent {
    std::uint32_t storage = 0;
    std::int64_t number = 0;
    MemoryLevel level = MemoryLevel::host;
    Instant ready;      // the copy under way has ended
    std::string event;  // recorded behind it
  };
  /// Of one storage.
  struct Keepers {
    std::vector<OffloadGroup> groups;  // that keep something on it, in their order
    std::optional<std::size_t> place;  // in `leaving` of the group that it leaves behind
    std::optional<OffloadGroup> leaves_behind;
  };
  struct Microbatch {
    std::size_t forward = 0;
    FlatMap<Keepers> keepers;                // by the storage's number
    std::vector<std::vector<Kept>> leaving;  // by the group that they may leave behind
    IdSet stays;                             // numbers of storages that must stay
    std::vector<Sent> sent;
    std::vector<std::vector<std::size_t>> sent_behind;  // by group: places in `sent`
    std::vector<std::vector<std::size_t>> kept_by;      // likewise, of a group that keeps them
    std::optional<OffloadGroup> in_backward_of;
  };
  struct Group {
    std::string_view name;
    MemoryLevel level = MemoryLevel::host;
    std::size_t begin = 0;
    std::size_t end = 0;  // the statement behind it
  };
  struct Plan {
    std::vector<Group> groups;
    FlatMap<std::size_t> last_reader;  // by buffer: 1 + the statement
  };

  static Plan plan_of(const Program& program, const Forward& forward);
  const Plan& plan(const Microbatch& of) const { return plans_[of.forward]; }
  void keep_on_device(std::uint32_t storage);
  OffloadCandidate candidate(const Microbatch& of, std::uint32_t storage, ValueId value) const;
  std::optional<OffloadGroup> leaves_behind(const Microbatch& of, std::uint32_t storage,
                                            ValueId value, OffloadGroup group) const;
  bool may_leave(const Microbatch& of, const Kept& kept) const;
  void send(Microbatch& of, OffloadGroup group);
  void begin_copies_out(Microbatch& of, OffloadGroup behind, MemoryLevel level,
                        std::span<const Kept> going);
  void bring(Microbatch& of, OffloadGroup group);
  void begin_copies_in(Microbatch& of, MemoryLevel level, std::span<const std::size_t> coming);
  /// Compute waits for those of them that are still on the way.
  void await(Microbatch& of, std::span<const std::size_t> places, bool is_out);
  bool is_in(const Sent& sent, Residence residence) const;
  void begin_batch(std::string_view stream);
  std::string end_batch(std::string_view stream);
  Instant copied_by(std::int64_t bytes, MemoryLevel level, bool is_out);

  const Program* program_;
  OffloadPolicy policy_;
  LinkRates links_;
  Ledger* ledger_;
  EventLog* log_;
  std::vector<Plan> plans_;  // by forward
  std::map<MicrobatchKey, Microbatch> microbatches_;
  Microbatch* current_ = nullptr;
  std::array<std::array<Instant, 2>, memory_level_count> free_at_{};  // by level and direction
  Duration waited_;
  std::int64_t n_events_ = 0;  // of this step: names are used again
  bool drops_waits_ = false;
};

}  // namespace remat
