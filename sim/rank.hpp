#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/phase_order.hpp"
#include "model/program.hpp"
#include "model/shapes.hpp"
#include "schedules/offload_policy.hpp"
#include "schedules/protocol.hpp"
#include "sim/chooser.hpp"
#include "sim/collective_port.hpp"
#include "sim/event_log.hpp"
#include "sim/frame.hpp"
#include "sim/gradient.hpp"
#include "sim/ledger.hpp"
#include "sim/live_graph.hpp"
#include "sim/planted_state.hpp"
#include "sim/rank_options.hpp"
#include "sim/rank_parts.hpp"
#include "sim/rank_report.hpp"
#include "sim/tape.hpp"
#include "sim/walk.hpp"

namespace remat {

class Offloader;

/// One rank at work: runs the program's forwards and their backwards under a protocol, op by op,
/// with a ledger of storages, exact values and an autograd tape. It asks the protocol and carries
/// out; it decides nothing that a protocol could. Source: protocols.md §2, observed-torch.md
/// §1 to §3 and §8.
class Rank : private SlotOwner {
 public:
  /// `offload`: what becomes of the program's offload groups, where anything does.
  Rank(const Program& program, const Protocol& protocol, const RankOptions& options, EventLog& log,
       const std::optional<OffloadPolicy>& offload = std::nullopt);
  ~Rank() override;

  CollectivePort& port() { return port_; }
  /// Parameters and other leaves come to be.
  void set_up();
  /// Runs the program's forward number `forward` as that of micro-batch `microbatch`.
  Flow run_forward(std::size_t forward, std::optional<std::int64_t> microbatch);
  /// backward() from the micro-batch's root, or, where `wrt` names leaves, grad() of those alone.
  /// `root`: where it starts, if not from the forward's own.
  Flow run_backward(std::optional<std::int64_t> microbatch, bool retain,
                    std::optional<std::int64_t> group, const std::vector<ValueId>& wrt,
                    std::optional<ValueId> root);
  /// Gradients of the micro-batch's inputs alone; the graph stays for the other half.
  Flow run_dx(std::optional<std::int64_t> microbatch, std::optional<std::int64_t> group);
  /// Gradients of the parameters, from what dx left.
  Flow run_dw(std::optional<std::int64_t> microbatch, std::optional<std::int64_t> group);
  /// The micro-batch's graph and what is left of its variables go.
  void drop_graph(std::optional<std::int64_t> microbatch);
  /// An optimizer's step: every parameter with a gradient is written, or what `writes` names; the
  /// gradients go.
  void run_update(const std::optional<std::vector<ValueId>>& writes);
  /// Every leaf's gradient goes: what comes next is the first to reach it.
  void zero_gradients();
  // Recompute sessions, one in scope at a time.
  void open_session(std::string_view name, bool retains);
  void close_session(std::string_view name);
  void clear_session(std::string_view name);
  /// Replays these frames, by their numbers, for the session in scope.
  Flow run_prefire(std::optional<std::int64_t> microbatch, const std::vector<std::int64_t>& frames);
  /// Adds what the step would touch if it came next: storages by their numbers, slots of frames as
  /// (frame, index). What a replay in it makes is its own and touches nothing of others.
  void footprint(const PhaseStep& step, Footprint& footprint) const;
  /// Everything of the step but parameters, gradients and the caller's inputs goes.
  void end_step();

  const std::optional<SimulatedError>& error() const { return error_; }
  /// Whether the caller of the phases from here on catches what they raise: the trace says so.
  void set_catches(bool catches) { catches_ = catches; }
  /// The caller has caught what the last phase raised, and goes on. What that phase had done stays
  /// as it left it.
  void forget_error() { error_.reset(); }
  const std::vector<Contribution>& contributions() const { return contributions_; }
  /// Those from the place `from` on go.
  void forget_contributions(std::size_t from) { contributions_.resize(from); }
  /// How much of the book-keeping is in use.
  RankContents contents() const;
  const Ledger& ledger() const { return ledger_; }
  const RankCounts& counts() const { return counts_; }
  /// What the compute stream spent on waits for copies of offloaded bytes.
  Duration copies_waited() const;
  /// Likewise, on other ranks in collectives.
  Duration collectives_waited() const { return port_.waited(); }

 private:
  /// One graph task: which nodes run, what reaches them.
  struct GraphTask;
  using Graph = LiveGraph;
  // rank.cpp
  bool has(RankFault fault) const { return options_.fault == fault; }
  void release(SavedSlot& slot) override;
  const ProgramValue& value_of(ValueId id) const { return program_->values[id]; }
  Ring element_of(const Tensor& tensor) const;
  /// A new storage for what the buffer is made for.
  std::uint32_t allocate(BufferId buffer, std::string_view maker);
  Ring content_of_holes(BufferId buffer);
  ShownTensor shown(const Tensor& tensor, bool with_value = false) const;
  Tensor leaf(ValueId value, OwnerClass owner);
  /// The index of a value or buffer, with the micro-batch where that has an input of its own.
  std::int64_t leaf_key(std::uint32_t index, BufferRole role) const;
  void begin_microbatch(std::optional<std::int64_t> microbatch, Phase phase);
  Variable* find(Walk& walk, ValueId value);
  Tensor tensor_of(Walk& walk, ValueId value, OwnerClass owner);
  std::string slot_name(const SavedSlot& slot) const;
  void free_frame(std::uint32_t index);
  std::uint32_t make_frame(Walk& walk, std::size_t at, const RegionBegin& region);
  Graph* graph_of(std::optional<std::int64_t> microbatch);
  void write_by_caller(ValueId value);

  // rank_offload.cpp
  Flow run_offloaded(Walk& walk, std::size_t at, const OffloadBegin& group);
  void keep_for_offload(const Walk& walk, KeptAs as, const Tensor& tensor);
  void hold_on_device(const Walk& walk, const Tensor& tensor);
  bool is_offloaded(const Tensor& tensor) const;
  Flow refuse_offloaded(const Tensor& tensor, const std::string& who);
  void launch(std::string_view name, std::span<const Tensor> reads, std::span<const Tensor> writes);
  void offload_in_replay(const CheckpointFrame& frame);

  // rank_errors.cpp
  void log_error();
  Flow fail(std::string_view code, std::string_view type, std::string message);
  Flow raise_error(std::string_view type, std::string message);
  Flow run_raise(Walk& walk, const Raise& raise);
  Flow raise_as_told(const Raise& raise, const CallSite& site, std::string_view what);
  Flow raise_in_unpack(const Node& node);
  Flow run_caught(Walk& walk, std::size_t at, const CatchBegin& caught);
  void release_all(Walk& walk, std::size_t begin, std::size_t end) const;
  std::string now() const;
  std::string described(const CallSite& site) const;
  CallSite site_of(const Walk& walk) const;
  CallSite site_of(const CheckpointFrame& frame) const;
  std::string described(const CheckpointFrame& frame) const;
  std::string described(const CheckpointFrame& frame, const WrapperBegin& wrapper,
                        std::int64_t call) const;

  // rank_walk.cpp
  Flow run(Walk& walk, std::size_t begin, std::size_t end);
  Flow run_op(Walk& walk, const OpStatement& op);
  bool is_defined(Walk& walk, ValueId value);
  Flow require_defined(Walk& walk, const std::vector<ValueId>& values);
  bool is_leaf_write(const OpStatement& op, ValueId output) const;
  void copy(Walk& walk, ValueId from, ValueId to);
  void bind(Walk& walk, ValueId from, ValueId to);
  Flow run_kernel(Walk& walk, const OpStatement& op, Tensors& outputs);
  Tensor make_output(Walk& walk, const OpStatement& op, ValueId output, const Tensors& made,
                     bool& is_new);
  void write_in_place(const OpStatement& op, const Tensor& target, Ring value);
  bool writes_a_part(const OpStatement& op) const;
  void make_node(Walk& walk, const OpStatement& op, std::vector<SavedSlot> saves,
                 const Raise* in_unpack);
  Edge edge_to(Walk& walk, ValueId input);
  Ring draw();

  void show_op(const Walk& walk, const OpStatement& op, std::span<const std::int64_t> input_ids,
               std::span<const Tensor> read, std::span<const Tensor> outputs);

  // rank_collectives.cpp
  Flow exchange(const OpStatement& op, Exchange what, const Handed& handed,
                std::vector<Ring>& elements);
  Flow run_collective(Walk& walk, const OpStatement& op, Tensors& outputs);
  void note_unwritten(Walk& walk, const OpStatement& op);
  Flow refuse_unwritten(Walk& walk, const OpStatement& op);
  Flow run_collective_node(GraphTask& task, std::size_t place);

  // rank_selective.cpp
  Flow serve(Walk& walk, const OpStatement& op, Tensors& outputs, bool& served);
  Flow remember(Walk& walk, const OpStatement& op, const Tensors& outputs);
  /// Where the cache keeps the op's calls.
  std::string_view queue_of(const OpStatement& op) const;

  // rank_units.cpp
  std::string_view owner_of(const CheckpointFrame& frame) const;
  bool is_hidden(const Walk& walk) const;
  bool is_policy_asked(const Walk& walk, const OpStatement& op) const;
  AskingUnits asking_units(const Walk& walk, const OpStatement& op) const;
  bool keeps(const OpStatement& op, const AskingUnits& asking, std::size_t call) const;
  Flow note_asked(const Walk& walk, const OpStatement& op, const AskingUnits& asking, bool kept);
  void pass_marker(Walk& walk, const Mark& mark);
  void warn(const Diagnosis& diagnosis, const std::string& message);
  void warn_of_config();
  void end_pass(const Walk& walk, const CheckpointFrame& frame);
  void end_layers(Flow flow);

  // rank_grad.cpp
  bool requires_grad(const Walk& walk, ValueId value) const;
  void set_requires_grad(Walk& walk, ValueId value, bool requires_grad) const;
  NodeRef history_of(const Walk& walk, ValueId value);
  Taped taped(const Walk& walk, const OpStatement& op, std::vector<Save>& own) const;
  void note_grad_of_outputs(Walk& walk, const OpStatement& op, bool makes_node) const;

  // rank_regions.cpp
  Flow run_region(Walk& walk, std::size_t at, const RegionBegin& region);
  Flow run_plain_region(Walk& walk, std::size_t at, const RegionBegin& region);
  Flow run_checkpointed(Walk& walk, std::size_t at, const RegionBegin& region);
  Flow save_inputs(Walk& walk, std::uint32_t index, const RegionBegin& region);
  bool loses_gradients(const RegionBegin& region, bool requires_grad) const;
  Flow run_reentrant(Walk& walk, std::size_t at, const RegionBegin& region);
  Flow pack(Walk& walk, const Tensor& tensor, SavedSlot& slot);
  Flow refill(Walk& walk, Tensor tensor, SavedSlot& slot);

  // rank_wrappers.cpp
  Flow run_wrapper(Walk& walk, std::size_t at, const WrapperBegin& wrapper);
  Flow run_excluded(Walk& walk, std::size_t at, const WrapperBegin& wrapper);
  std::vector<ShownInput> collect_inputs(Walk& walk, WrapperCall& call);
  void note_inputs(Walk& walk, WrapperCall& call);
  Flow leave_excluded(Walk& walk, WrapperCall& call);
  NodeRef make_boundary_node(Walk& walk, ValueId output, SavedSlot slot, const CallSite& site);
  Flow put_boundaries(Walk& walk, WrapperCall& call, WrapperEntry& entry);
  void keep_marks(const WrapperCall& call);
  bool wants_boundary(Walk& walk, std::size_t leaf, ValueId output) const;
  bool is_save_output(const CheckpointFrame& frame, const Tensor& tensor) const;
  void note_outputs(Walk& walk, const WrapperCall& call);
  void carry_object(Walk& walk, std::int64_t from, std::int64_t to);
  ShownCall shown_call(const CheckpointFrame& frame, const WrapperBegin& wrapper,
                       std::int64_t call) const;
  Flow refuse_unkept(Walk& walk, std::string_view reader, ValueId value);
  Flow refuse_unkept_inputs(Walk& walk, const OpStatement& op);
  Flow refuse_unkept_outputs(Walk& walk, const CheckpointFrame& frame, const RegionBegin& region);
  bool keeps_outputs(const WrapperBegin& wrapper) const;
  Tensor trigger();

  // rank_inputs.cpp
  InputMatch match(const WrapperCall& call, std::size_t input, const Tensor& tensor) const;
  std::optional<std::size_t> rederived_from(const Walk& walk, const Tensor& tensor) const;
  std::size_t first_like(const WrapperCall& call, std::size_t input) const;
  Flow pack_excluded(Walk& walk, const Tensor& tensor, SavedSlot& slot);
  InputSlot& add_input_slot(std::uint32_t frame_index, const WrapperBegin& wrapper,
                            std::size_t input, const Tensor& tensor, SavedSlot& slot);
  void make_input_slot(std::uint32_t frame_index, const WrapperBegin& wrapper, std::int64_t call,
                       std::size_t input, const Tensor& tensor, SavedSlot& slot);

  // rank_skip.cpp
  void restore_generator(std::int64_t position);
  Flow skip_wrapper(Walk& walk, const WrapperBegin& wrapper);
  Flow fill_slots(Walk& walk, const WrapperBegin& wrapper, const WrapperEntry& entry,
                  std::int64_t call);
  Brought bring(Walk& walk, const WrapperBegin& wrapper, const InputSlot& slot);
  void put_in_slot(InputSlot& slot, Tensor tensor);
  Flow fill(Walk& walk, const WrapperBegin& wrapper, InputSlot& slot, MatchedCalls calls);
  std::string planted_key(const WrapperBegin& wrapper, std::int64_t call) const;
  const PlantedState::LatestSlots* latest_slots(const WrapperBegin& wrapper,
                                                std::int64_t call) const;
  std::size_t body_of(const Walk& walk, const WrapperBegin& wrapper) const;
  void leave_unwritten(Walk& walk, const WrapperBegin& wrapper);
  Flow serve_outputs(Walk& walk, const WrapperBegin& wrapper, WrapperEntry& entry,
                     std::int64_t call);
  Flow repeat_boundaries(Walk& walk, const WrapperBegin& wrapper, const WrapperEntry& entry,
                         std::int64_t call, std::int64_t& n_boundaries);
  Flow end_entries(CheckpointFrame& frame, Flow flow);
  void drop_entries();
  Flow unpack_input(SavedSlot& slot, const ReplayKey& key, Tensor& tensor);

  // rank_remat.cpp
  Flow run_remat_region(Walk& walk, std::size_t at, const WrapperBegin& region);
  Flow run_recomputed(Walk& walk, std::size_t at, const WrapperBegin& region);
  Flow run_saved(Walk& walk, std::size_t at, const WrapperBegin& region);
  void keep_record(Walk& walk, const WrapperCall& call);
  void persist(CheckpointFrame& frame, const Tensor& tensor);
  std::int64_t origin_of(const Tensor& tensor) const;
  Flow need(Walk& walk, ValueId value);
  Flow pack_saved(Walk& walk, const Tensor& tensor, SavedSlot& slot);
  Flow skip_saved(Walk& walk, const WrapperBegin& region);
  Flow rederive_inputs(Walk& walk, const WrapperBegin& region, const SaveRecord& record);
  Flow serve_saved(Walk& walk, const WrapperBegin& region, SaveRecord& record);
  void put_placeholder(Walk& walk, const WrapperBegin& region, std::size_t output);
  Flow refuse_placeholder_inputs(Walk& walk, const OpStatement& op);
  Flow refuse_served_write(Walk& walk, const OpStatement& op);
  Flow put_triggers(Walk& walk, std::uint32_t frame, const RegionBegin& region);
  Flow repeat_triggers(Walk& walk, const CheckpointFrame& frame);
  std::string input_slot_name(const CheckpointFrame& frame, const InputSlot& slot) const;
  ShownRegion shown_region(const CheckpointFrame& frame, const WrapperBegin& region) const;
  std::string described(const CheckpointFrame& frame, const WrapperBegin& region) const;

  // rank_replay.cpp
  /// `saved_by`: the call that saved it, where no frame knows.
  Flow unpack(SavedSlot& slot, const ReplayKey& key, const CallSite& saved_by, Tensor& tensor);
  Flow unpack_kept(SavedSlot& slot, const CallSite& saved_by, Tensor& tensor);
  Flow unpack_holder(SavedSlot& slot, const ReplayKey& asked_by, Tensor& tensor);
  /// `asked_by`: the key that other frames are asked under, where they know no better.
  Flow replay(std::uint32_t index, const ReplayKey& key, const ReplayKey& asked_by);
  Flow replay_alive(std::uint32_t index, const ReplayKey& key, const ReplayKey& asked_by);
  ReplaySession& session_of(CheckpointFrame& frame, const ReplayKey& key) const;
  std::int64_t forward_packs(const CheckpointFrame& frame) const;
  Flow fetch_inputs(CheckpointFrame& frame, const ReplayKey& key, std::vector<Tensor>& inputs);
  Flow check_captured(const CheckpointFrame& frame, const RegionBegin& region);
  Flow run_replay_body(std::uint32_t index, const ReplayKey& key, std::vector<Tensor> inputs);
  Flow run_bracketed(Walk& walk, const ReplayBracket& bracket);
  Flow judge_replay(CheckpointFrame& frame, const ReplaySession& session);
  const RegionBegin& region_of(std::size_t forward, std::size_t begin) const;

  // rank_sessions.cpp
  std::string_view checkpoint_error(const CheckpointFrame& frame) const;
  ReplayKey key_for(const CheckpointFrame& frame, const ReplayKey& asked_by) const;
  bool is_retained(const ReplayKey& key) const;
  Flow prefire(std::int64_t number);
  Flow refuse_under_session(const RegionBegin& region);

  // rank_shapes.cpp
  const Shape& shape_of(const Tensor& tensor) const;
  void keep_shape(ValueId known_as, std::int64_t from, const Tensor& to);
  Flow carry_shapes(Walk& walk, const OpStatement& op, CarriedShapes& made);
  Flow refuse_placeholder(const Walk& walk, const OpStatement& op);
  void note_shapes(const CarriedShapes& shapes, const Tensors& outputs);
  Flow refuse_other_shapes(const Node& node, const Tensors& saved);

  // rank_backward.cpp
  Flow run_task(GraphTask& task);
  Flow run_nodes(GraphTask& task);
  Flow run_node(GraphTask& task, std::size_t place);
  Flow run_op_node(GraphTask& task, std::size_t place);
  Flow run_boundary_node(GraphTask& task, std::size_t place);
  void find_nodes(GraphTask& task);
  static bool is_beyond(const GraphTask& task, const Edge& edge);
  static bool is_wanted(const GraphTask& task, const Edge& edge);
  void send(GraphTask& task, const Edge& edge, Gradient gradient);
  void add_gradient(std::optional<Gradient>& to, Gradient gradient);
  void reach_leaf(ValueId leaf, Gradient gradient);
  Gradient make_gradient(std::string_view maker, std::int64_t bytes, Ring value,
                         std::span<const std::int64_t> inputs);
  Gradient shared(const Gradient& gradient) const;
  std::optional<Gradient> input_gradient(const Node& node,
                                         std::span<const std::optional<Gradient>> outer,
                                         std::size_t input, const Tensors& saved);
  Ring derivative(const Node& node, std::size_t output, std::size_t input,
                  const Tensors& saved) const;
  void release_saves(Node& node);
  /// The next graph task; a replay that it asks for is keyed by `group` where there is one.
  GraphTask begin_task(std::optional<std::int64_t> group);
  Flow add_root(GraphTask& task, Graph& graph, std::optional<ValueId> root);
  Flow finish_phase(Flow flow);

  // rank_reentrant.cpp
  Flow run_reentrant_node(GraphTask& task, std::size_t place);
  Flow bind_arguments(GraphTask& task, Node& node, Walk& walk, std::vector<NodeRef>& inputs);
  Flow run_inner_backward(GraphTask& task, std::size_t place, Walk& walk, GraphTask& inner);

  // rank_footprint.cpp
  void add_leaves(Footprint& footprint, bool parameters_are_written) const;
  void add_graph(const Graph& graph, Footprint& footprint) const;

  // rank_split.cpp
  Flow detach_root(Graph& graph);
  bool has_dw_at_once(const Graph& graph) const;
  Flow run_dw_at_once(Graph& graph, std::optional<std::int64_t> group);
  static ParamGroup& merged_group(std::vector<ParamGroup>& groups,
                                  const std::function<bool(const ParamGroup&)>& shares);
  void find_groups(Graph& graph, const GraphTask& dx);

  const Program* program_;
  const Protocol* protocol_;
  FrameRules frame_rules_;
  CacheRules cache_rules_;
  ExclusionRules exclusion_rules_;
  RematRules remat_rules_;
  const UnitPolicy* units_;
  RankOptions options_;
  EventLog* log_;
  CollectivePort port_;
  Ledger ledger_;
  Tape tape_;
  std::unique_ptr<Offloader> offloader_;         // none: nothing is offloaded
  std::map<std::int64_t, Tensor> leaves_;        // by leaf_key of the value
  std::map<std::int64_t, Owned> leaf_buffers_;   // by leaf_key of the buffer
  std::map<std::int64_t, Gradient> leaf_grads_;  // like leaves_
  std::optional<std::int64_t> microbatch_;       // that is worked on
  std::map<std::int64_t, Graph> graphs_;         // by micro-batch; none: -1
  std::vector<Graph> leaked_graphs_;             // of RankFault::dropped_graphs_kept
  PlantedState planted_;
  std::vector<std::unique_ptr<CheckpointFrame>> frames_;
  std::vector<std::uint32_t> free_frames_;
  std::optional<OpenSession> session_;
  UnitBook unit_book_;
  bool graph_is_kept_ = true;  // by the graph task that runs; outside one, as if it were
  std::map<std::int64_t, std::set<std::int64_t>> registered_;  // frames, by session
  std::map<std::int64_t, Shape> other_shapes_;  // by tensor: where it is not its value's
  // What this phase has added to each leaf, by value, in however many graph tasks.
  std::map<std::uint32_t, Ring> phase_grads_;
  std::vector<Contribution> contributions_;
  std::optional<SimulatedError> error_;
  RankCounts counts_;
  bool catches_ = false;  // the caller of this phase, what it raises
};

}  // namespace remat
