#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program.hpp"
#include "model/units.hpp"
#include "sim/call_site.hpp"
#include "sim/peers.hpp"
#include "sim/run_book.hpp"
#include "traces/trace.hpp"

namespace remat {

/// The stream that copies between the device and a level run on, in one direction.
std::string_view copy_stream(MemoryLevel level, bool is_out);

/// Who asked for a slot: a graph task, an exec group, or a recompute session.
struct ReplayKey {
  enum class Kind : std::uint8_t { graph_task, group, session } kind = Kind::graph_task;
  std::int64_t number = 0;
  friend bool operator==(const ReplayKey&, const ReplayKey&) = default;
};

/// A tensor as an event shows it.
struct ShownTensor {
  ValueId value{0};
  std::int64_t id = 0;
  std::int64_t storage = 0;
  std::uint32_t version = 0;
  std::int64_t begin = 0;       // elements from the storage's start to where its tensors lie
  std::optional<Ring> element;  // shown as the tensor's `value`
};

/// One call of an excluded region. A forward call and the replay's call of the same place are
/// counted apart.
struct ShownCall {
  std::int64_t frame = 0;
  std::string_view wrapper;
  std::int64_t call = 0;
};

/// An argument's leaf as a call finds it.
struct ShownInput {
  ShownTensor tensor;
  std::string_view path;
  std::string_view origin;  // empty: not told
};

/// A region of torch_remat in a call of a checkpointed region.
struct ShownRegion {
  std::int64_t frame = 0;
  std::string_view name;
};

/// Where a tensor goes that such a region saves; `path`: the argument's that a replay brings it
/// from, empty where the tensor is kept.
struct ShownPlace {
  std::string_view slot;
  std::string_view path;
  bool is_view = false;  // of the argument
};

/// A rank of several, which write one trace.
struct OneOfSeveral {
  std::uint32_t number = 0;
  RunBook* book = nullptr;
  Peers* peers = nullptr;
};

/// What a simulation tells, written into a trace event by event. Without a trace it tells nothing
/// and costs little: the plain twin runs so.
class EventLog {
 public:
  EventLog(Trace* trace, const Program& program,
           const std::optional<OneOfSeveral>& rank = std::nullopt)
      : trace_(trace), program_(&program) {
    if (!rank) return;
    rank_ = rank->number;
    book_ = rank->book;
    peers_ = rank->peers;
  }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  bool is_on() const { return trace_ != nullptr; }
  /// From here on nothing is told: the run is over, what is left is only taken down.
  void stop() { trace_ = nullptr; }
  std::int64_t seq() const { return book_->seq; }
  /// None: the rank is alone.
  std::optional<std::uint32_t> rank() const { return rank_; }
  /// Numbers for what is new.
  RunBook& book() { return *book_; }

  // What all events until the next change have in common. A unit's name must outlive it.
  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  void set_microbatch(std::optional<std::int64_t> microbatch) { microbatch_ = microbatch; }
  void set_graph_task(std::optional<std::int64_t> task) { graph_task_ = task; }
  std::optional<std::int64_t> graph_task() const { return graph_task_; }
  void push_unit(std::string_view name, std::optional<std::int64_t> invocation) {
    units_.push_back({.unit = name, .invocation = invocation, .wrapper = {}});
  }
  void pop_unit() { units_.pop_back(); }
  /// The unit pushed last.
  CallSite unit() const { return units_.empty() ? CallSite{} : units_.back(); }

  Instant now() const { return now_; }
  /// Time that no run reaches stays at the largest. Ranks that are behind go first.
  void spend(Duration duration) {
    now_.ns = saturated_sum(now_.ns, duration.ns);
    if (peers_ != nullptr && duration.ns > 0) peers_->pass_turn(now_);
  }
  /// The rank has waited until then.
  void wait_until(Instant then) { now_ = then; }

  void header(std::string_view config_json, std::string_view expect_json, std::size_t n_ranks);
  void step(bool begins, std::int64_t step);
  void phase_border(bool begins, std::optional<bool> retain);
  void storage_alloc(std::int64_t storage, std::int64_t bytes, BufferRole role,
                     std::string_view maker);
  void storage_free(std::int64_t storage, std::int64_t bytes);
  /// The storage is that of a leaf's gradient now.
  void role_of_grad(std::int64_t storage);
  void leaf(const ShownTensor& tensor);
  void op(std::string_view name, std::span<const std::int64_t> inputs,
          std::span<const ShownTensor> outputs, Duration cost, bool is_compiled = false);
  void op_error(std::string_view name, std::string_view type, std::span<const std::int64_t> inputs);
  /// A hook detaches a tensor: the same storage under another identity.
  void hook_detach(std::string_view hook, std::int64_t from, const ShownTensor& to);
  /// A boundary hands on what it was given, under another identity.
  void boundary_view(std::int64_t from, const ShownTensor& to);
  /// An op of backward: its output is a gradient, which no value of the program describes.
  void backward_op(std::string_view name, std::span<const std::int64_t> inputs, std::int64_t output,
                   std::int64_t storage, std::int64_t bytes);
  void mutate(std::int64_t tensor, std::int64_t storage);
  // event_log_offload.cpp
  /// Work on a stream; storages by their numbers.
  void launch(std::string_view stream, std::string_view name, std::span<const std::int64_t> reads,
              std::span<const std::int64_t> writes);
  /// A record on the stream, or a wait of it.
  void stream_event(Kind kind, std::string_view stream, std::string_view event);
  /// An end of a copy (copy_begin, copy_end), `is_out` from the device.
  void copy(Kind kind, std::int64_t storage, MemoryLevel level, bool is_out);
  void pack(std::string_view slot, std::optional<std::int64_t> frame,
            std::optional<std::int64_t> index, std::string_view role, bool placeholder,
            const ShownTensor& tensor, bool boundary = false);
  void repack(std::int64_t frame, std::int64_t index, std::int64_t of, const ReplayKey& key,
              bool holder_alive, const ShownTensor& tensor, bool boundary = false);
  void unpack_begin(std::string_view slot, std::optional<std::int64_t> frame,
                    std::optional<ReplayKey> key);
  /// `from`: saved, recomputed or rederived.
  void unpack(std::string_view slot, std::optional<std::int64_t> frame,
              std::optional<ReplayKey> key, std::string_view from, const ShownTensor& tensor);
  void unpack_error(std::string_view slot, std::optional<std::int64_t> frame,
                    std::optional<ReplayKey> key, std::string_view code, std::string_view type);
  void holder_free(std::string_view slot, std::optional<std::int64_t> frame);
  void frame_create(std::int64_t frame, bool early_stop);
  void frame_free(std::int64_t frame);
  void inputs_save(std::int64_t frame, std::span<const std::int64_t> tensors,
                   std::int64_t n_hidden);
  void inputs_unpack_begin(std::int64_t frame);
  void inputs_unpack(std::int64_t frame, std::span<const std::int64_t> tensors);
  /// The unit is the one pushed last.
  void unit_begin(std::optional<std::int64_t> frame, bool replay, bool checkpointed, bool reentrant,
                  std::optional<ReplayKey> key, std::string_view owner = {});
  void unit_end(std::optional<std::int64_t> frame, bool replay, bool checkpointed, bool reentrant,
                std::string_view ended_by);
  void body_begin(std::int64_t frame, bool replay);
  void early_stop(std::int64_t frame, const ReplayKey& key, std::int64_t after, std::int64_t of);
  void determinism_check(std::int64_t frame, bool ok, std::int64_t n_forward,
                         std::int64_t n_replay);
  void sac_decide(std::int64_t frame, std::string_view op, std::int64_t index, bool saved,
                  std::span<const std::int64_t> tensors);
  void sac_hit(std::int64_t frame, std::string_view op, std::int64_t index,
               std::span<const std::int64_t> tensors);
  // event_log_wrappers.cpp
  void wrapper_enter(const ShownCall& call, bool skipped, bool save_output,
                     std::span<const ShownInput> inputs);
  void wrapper_exit(const ShownCall& call, bool skipped, std::string_view ended_by,
                    std::int64_t n_boundaries, std::span<const std::int64_t> outputs);
  /// `path`: of the slot's input; empty where the tensor is kept.
  void excluded_pack(std::string_view slot, const ShownCall& call, std::string_view path,
                     const ShownTensor& tensor);
  void slot_fill(std::string_view slot, const ShownCall& call, std::int64_t entry_call,
                 std::string_view path, const ShownTensor& tensor, bool refused);
  void cache_put(const ShownCall& call, std::int64_t leaves, std::int64_t bindings,
                 std::span<const ShownTensor> kept, bool is_kept);
  void cache_pop(const ShownCall& call, std::optional<std::int64_t> entry_call, std::int64_t leaves,
                 bool is_kept, std::span<const std::int64_t> tensors, std::int64_t left);
  void cache_clear(std::int64_t frame, std::int64_t n_entries, std::string_view left_json);
  void boundary(const ShownCall& call, std::int64_t leaf, bool replay, std::int64_t input);
  void placeholder(const ShownCall& call, std::int64_t leaves, const ShownTensor& tensor);
  void placeholder_read(const ShownCall& call, std::int64_t leaf, const ShownTensor& tensor);
  // event_log_remat.cpp
  void region(bool begins, const ShownRegion& region, bool is_saved, bool in_replay);
  void region_pack(const ShownRegion& region, const ShownPlace& place, const ShownTensor& tensor);
  void remat_rederive(const ShownRegion& region, const ShownPlace& place, const ReplayKey& key,
                      const ShownTensor& tensor, bool refused);
  void remat_persist(const ShownRegion& region, std::int64_t output, const ShownTensor& tensor);
  void remat_serve(const ShownRegion& region, std::int64_t output, bool popped,
                   const ShownTensor& tensor);
  void remat_placeholder(const ShownRegion& region, std::int64_t output,
                         std::int64_t declared_bytes, const ShownTensor& tensor);
  /// The session of that name.
  ReplayKey session_key(std::string_view name);
  /// It is opened, closed or cleared.
  void session(Kind kind, const ReplayKey& key, std::optional<bool> retains);
  void node_begin(std::string_view name, std::uint64_t number, bool retain);
  void grad(std::string_view param, Ring value);
  void side_effect(std::string_view name);
  void collective(std::string_view group, std::string_view name, std::string_view tag,
                  std::int64_t n);
  void mark(std::string_view name);
  void warning(const Diagnosis& diagnosis, std::string_view message);
  void rng(std::int64_t position);
  void rng_set(std::int64_t position);
  void zero_grad();
  void update(std::string_view param, std::int64_t version);
  void error(std::string_view code, std::string_view type, std::string_view message, bool caught);

 private:
  void hook_op(std::string_view name, std::string_view hook, std::int64_t from,
               const ShownTensor& to);
  bool begin();
  void end(Kind kind);
  void add_optional(Field field, std::optional<std::int64_t> value);
  void add_key(std::optional<ReplayKey> key);
  void add_unit();
  void add_call(const ShownCall& call);
  void add_region(const ShownRegion& region);
  /// The tensor without its value.
  TensorView bare_view(const ShownTensor& tensor);
  /// A view whose `value` lies in `text`, which must outlive it.
  TensorView view(const ShownTensor& tensor, std::string& text);
  void add_tensor(const ShownTensor& tensor);
  LayoutId layout_of(ValueId value);
  LayoutId moved_layout(const ShownTensor& tensor);

  Trace* trace_;
  const Program* program_;
  std::optional<std::uint32_t> rank_;  // none: there is only one
  RunBook own_book_;                   // of a rank alone
  RunBook* book_ = &own_book_;
  Peers* peers_ = nullptr;
  Instant now_;
  Phase phase_ = Phase::setup;
  std::optional<std::int64_t> microbatch_;
  std::optional<std::int64_t> graph_task_;
  std::vector<CallSite> units_;
  std::vector<std::string> sessions_;             // names, by number
  std::vector<std::optional<LayoutId>> layouts_;  // by value
  std::vector<TensorView> views_;                 // reused
  std::vector<std::string> texts_;                // reused
  std::string text_;                              // likewise
};

}  // namespace remat
