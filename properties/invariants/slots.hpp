#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/flat_map.hpp"
#include "properties/invariants/release_log.hpp"
#include "properties/invariants/session_key.hpp"
#include "properties/invariants/storages.hpp"
#include "traces/trace.hpp"

namespace remat {

/// What a slot holds between pack and unpack.
enum class Held : std::uint8_t { saved, placeholder, offloaded, slot, unknown };

/// A tensor as one event showed it, kept past the event.
struct KeptTensor {
  std::optional<StorageId> storage;
  std::optional<std::int64_t> tensor;
  std::optional<LayoutId> layout;
  std::optional<std::int64_t> recorded_version;  // field `v`
  std::uint32_t version = 0;                     // writes to the storage so far
  std::optional<NameId> maker;                   // name of the op that made the storage
  std::optional<std::uint32_t> writes;           // since it was made, if the trace saw that
  std::string value;                             // JSON text, empty where not recorded
};

/// A slot was filled under a session (none: the trace does not say which).
struct Fill {
  std::optional<SessionKey> session;
  KeptTensor what;
  std::int64_t seq = 0;
  std::int64_t replay_begin_seq = 0;  // of the replay that filled it; its own event outside one
};

/// A slot was asked for under a session.
struct Request {
  std::optional<SessionKey> session;
  std::int64_t seq = 0;
  bool begun = false;            // by an unpack_begin whose unpack or unpack_error has not come yet
  std::optional<bool> retained;  // may what was handed out be asked for again in this session?
};

/// Whose slot it is, of those that an excluded region's body packed (X1, X3).
struct ExcludedPlace {
  std::optional<std::int64_t> frame;  // frame key
  NameId wrapper{0};
  std::optional<std::int64_t> call;
  std::string path;              // of the input, as JSON; empty where it is none
  std::optional<NameId> handle;  // shared by all slots of one input of one call
};

struct Slot {
  NameId name{0};
  Held held = Held::unknown;
  std::optional<NameId> role;
  std::optional<std::int64_t> frame;  // frame key of a checkpointed region's save
  std::optional<std::int64_t> index;
  std::optional<NameId> unit;
  std::optional<std::int64_t> invocation;
  std::optional<std::int64_t> microbatch;
  std::optional<NameId> region;
  std::optional<ExcludedPlace> excluded;
  bool is_boundary = false;  // the empty save of an excluded region's boundary
  bool is_brought = false;   // an input of a saved region of torch_remat, which a replay brings
  KeptTensor packed;
  std::int64_t packed_seq = 0;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t>
      released_seq;  // its holder is gone; the frame still knows what was packed
  std::vector<Fill> fills;
  std::vector<Request> requests;

  /// The fill that a read under `session` gets; none where nothing filled the slot for it.
  const Fill* fill_for(std::optional<SessionKey> session) const;
  /// The last request that still waits for its unpack or unpack_error, and that one under `session`
  /// answers. Requests nest: the replay that the first one starts may ask for the same slot under
  /// another session.
  Request* open_request(std::optional<SessionKey> session);
  const Request* open_request(std::optional<SessionKey> session) const {
    return const_cast<Slot*>(this)->open_request(session);
  }
};

/// The slots that are alive or that a live frame still lists, and which are gone.
class SlotBook {
 public:
  Slot* find(NameId name) { return slots_.find(name.index()); }
  const Slot* find(NameId name) const { return slots_.find(name.index()); }
  /// The slot that the event names, by `slot` or by `frame` and `idx`.
  Slot* of(const EventView& event) { return const_cast<Slot*>(std::as_const(*this).of(event)); }
  const Slot* of(const EventView& event) const;

  /// Keeps a new slot; one of the same name from before is forgotten.
  Slot& pack(Slot slot);
  void release(NameId name, std::int64_t seq);
  /// The frame is gone: so are its slots that have been released.
  void free_frame(const std::vector<NameId>& saves);
  /// When the slot was released, if it is gone.
  std::optional<ReleaseMoment> released(NameId name) const;
  /// The trace tells when slots die.
  bool deaths_are_recorded() const { return deaths_are_recorded_; }
  /// Ends the session: its fills and requests are gone. An excluded region's slot stays filled,
  /// until its owner is gone (X2).
  void clear_session(SessionKey session);
  /// What was raised before they were answered has ended all requests that wait.
  void withdraw_requests();
  /// Visits the slots that are alive, in the order in which they were packed.
  template <typename Visit>
  void each_alive(Visit visit) const {
    for (const auto& [order, name] : alive_)
      visit(*slots_.find(name.index()));
  }

 private:
  void forget(const Slot& slot);

  FlatMap<Slot> slots_;
  std::map<std::int64_t, NameId> alive_;                              // pack event → slot
  std::map<std::pair<std::int64_t, std::int64_t>, NameId> by_index_;  // (frame, idx) → slot
  ReleaseLog released_;                                               // by name
  bool deaths_are_recorded_ = false;
};

Held held_named(std::string_view name);

}  // namespace remat
