#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/id.hpp"
#include "model/memory_levels.hpp"
#include "model/op_kinds.hpp"
#include "model/ring.hpp"
#include "model/tensor_layout.hpp"
#include "model/units.hpp"

namespace remat {

/// A tensor of the program, given a value once each time its statement runs.
using ValueId = Id<struct ValueTag>;
/// Bytes that one or more tensors of the program lie in: views share a buffer.
using BufferId = Id<struct BufferTag>;

/// Who owns a buffer that the program does not make itself.
enum class BufferRole : std::uint8_t { none, param, buffer, input, external };

struct ProgramBuffer {
  std::int64_t bytes = 0;
  BufferRole role = BufferRole::none;
  bool has_holes = false;  // the tensor that it was made for leaves some
};

struct ProgramValue {
  std::string name;
  BufferId buffer{0};
  TensorLayout layout;
  Ring constant;  // of the layout
  Ring of_holes;  // constant of what it shows of its storage's holes; 0: nothing
  bool floating = true;
  bool requires_grad = false;  // a leaf whose gradient is asked for, or made from one
  bool is_view = false;        // made by looking at another tensor's storage
  bool in_container = false;   // leaves the region that makes it inside a dict or a list
};

/// Where a recording shows that a save of an excluded region's body went: the slot's number, and
/// the input of the call that a replay brings it from; none where the tensor is kept.
struct ExcludedSlot {
  std::int64_t number = 0;  // below 0: it has none
  std::optional<std::size_t> input = std::nullopt;
};

/// A tensor that an op saves for backward. The order of an op's saves is the order in which they
/// are packed and, in its node, unpacked (observed-torch.md §8 R2).
struct Save {
  ValueId value{0};
  bool after_op = false;    // packed once the kernel has run
  std::uint8_t factor = 0;  // which input or output it is (Monomial); `no_factor`: neither
  static constexpr std::uint8_t no_factor = 0xff;
  /// An in-place op that needs what it overwrites saves a copy of it: `value` is that copy, made
  /// just before it is packed (observed-torch.md §8 R14).
  std::optional<ValueId> copy_of = std::nullopt;
  std::optional<ExcludedSlot> excluded = std::nullopt;  // where a recording tells
};

/// The factor of the input or output at `index`; none for one past all that a monomial can name.
inline std::uint8_t save_factor(bool is_output, std::ptrdiff_t index) {
  if (index >= Monomial::first_output - 1) return Save::no_factor;
  return static_cast<std::uint8_t>(index + (is_output ? Monomial::first_output : 0));
}

/// Ranks that issue collectives together, in their order.
struct RankGroup {
  std::string name;
  std::vector<std::uint32_t> ranks;
};

struct OpStatement {
  std::string name;
  const OpKind* kind = nullptr;
  std::uint64_t seed = 0;  // of the value's constants: kind and attributes
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Save> saves;
  bool makes_node = false;         // autograd gets a node for it where gradients are on
  bool kept = false;               // a selective policy keeps its outputs: a replay is served them
  std::int64_t replay_offset = 0;  // elements by which its output lies further on in a replay
  bool by_caller = false;          // not the model's: the caller writes a tensor between two phases
  std::optional<ValueId> writes;   // in place: the old value of what it writes
  std::vector<ValueId> were;       // in place, where known: what each output was before
  std::optional<std::uint32_t> group = std::nullopt;  // of a collective: the program's, which
  Duration cost;
  /// Of each gradient that backward makes here; without it backward takes the op's cost, once.
  std::optional<Duration> gradient_cost;
};

enum class RegionKind : std::uint8_t {
  unit,          // a name that errors and summaries use
  checkpointed,  // what its protocol makes of it
};

/// Which of a model's layers a checkpointed region is, and of how many.
struct LayerPlace {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// A region runs up to the statement at `end`, its RegionEnd.
struct RegionBegin {
  std::string name;
  std::string owner;  // the model that it is a layer of, where there are several
  LayerPlace layer;   // among the owner's; of checkpointed ones
  std::optional<std::int64_t> invocation;
  RegionKind kind = RegionKind::checkpointed;
  bool reentrant = false;
  bool early_stop = true;
  bool preserves_rng = true;
  bool knows_sessions = false;    // recompute sessions may replay it
  bool tells_boundaries = false;  // those of torch_remat are ops of the body, as a recording has it
  std::optional<std::int64_t> frame;      // its number, where a recording gives one
  std::vector<ValueId> inputs;            // top-level tensor arguments, kept as saved tensors
  std::vector<ExcludedSlot> input_slots;  // of these, where a recording tells
  std::vector<ValueId> captured;  // read in the body, made outside it, and no top-level argument
  /// A parameter that the body reads.
  struct Param {
    ValueId value{0};
    bool in_excluded = false;  // in excluded regions' bodies alone: a replay leaves them out
  };
  std::vector<Param> params;
  std::vector<ValueId> outputs;  // made in the body and read after it
  std::size_t end = 0;
};
struct RegionEnd {
  std::size_t begin = 0;
};
/// A region within a checkpointed one that has a say in its replay: an exclusion wrapper's
/// (protocols.md P3 to P6) or torch_remat's (P7). Runs up to the statement at `end`, its
/// WrapperEnd.
struct WrapperBegin {
  /// What a replay is to do with the body.
  enum class Policy : std::uint8_t {
    exclude,   // leave it out, as an exclusion wrapper does
    save,      // leave it out, as torch_remat does
    recompute  // run it: a region of torch_remat, whose inputs a replay must have
  };
  /// A tensor leaf of the arguments, and where it lies in them: `arg0`, `arg0[1].k`, `kwarg.mask`.
  struct Input {
    ValueId value{0};
    std::string path;
  };
  std::string name;
  Policy policy = Policy::exclude;
  bool save_output = true;       // a replay is served what forward returned; else placeholders
  bool hands_over = false;       // the caller keeps no name of its arguments: the body is the last
  std::vector<Input> inputs;     // depth first, positional arguments before the others
  std::vector<ValueId> outputs;  // tensor leaves of what it returns; one may be there twice
  bool tells_outputs = false;    // the program says which; otherwise what is read after the body
  /// A recompute boundary that a recording shows: which output passes it, and what comes out.
  struct Boundary {
    std::size_t leaf = 0;
    ValueId value{0};
    std::optional<ExcludedSlot> slot = std::nullopt;  // in an excluded region around
  };
  bool is_recorded = false;  // slots and boundaries are told, and follow from no rule
  std::vector<Boundary> boundaries;
  std::size_t end = 0;
};
/// Some protocols leave its body out of a replay.
inline bool is_left_out(const WrapperBegin& wrapper) {
  return wrapper.policy != WrapperBegin::Policy::recompute;
}
/// What an output is known as once the call is over.
inline ValueId value_after(const WrapperBegin& wrapper, std::size_t leaf) {
  for (const WrapperBegin::Boundary& boundary : wrapper.boundaries)
    if (boundary.leaf == leaf) return boundary.value;
  return wrapper.outputs[leaf];
}
struct WrapperEnd {
  std::size_t begin = 0;
};
/// A replay of the checkpointed region around will read the value, whoever made it
/// (recompute_needs_tensor of torch_remat).
struct NeedsTensor {
  ValueId value{0};
};
/// A marker of a save unit is passed.
struct Mark {
  std::string name;
};
/// Ops up to the statement before `end` are compiled into one, which some policies do not see into.
struct CompiledBegin {
  std::size_t end = 0;
};
/// A layer whose saved tensors wait elsewhere until its backward, where the protocol offloads
/// (protocols.md P11); up to the statement before `end`. Lies in no other block.
struct OffloadBegin {
  std::string name;
  MemoryLevel level = MemoryLevel::host;
  std::size_t end = 0;
};
/// The program's variables of these values go out of scope.
struct Release {
  std::vector<ValueId> values;
};
/// An effect outside tensors: a counter, a log, a cache.
struct SideEffect {
  std::string name;
};
/// Where the body raises, in the runs of it that `runs` names; or what a hook raises that the next
/// op's saves go through, when the first of them is packed or when backward asks for it.
struct Raise {
  std::string type;
  enum class Runs : std::uint8_t { always, forward, replay, pack, unpack } runs = Runs::always;
  std::optional<std::int64_t> times = std::nullopt;  // over a whole run; none: every time
  std::int64_t number = 0;                           // which one of the program's
  bool is_a_hooks() const { return runs == Runs::pack || runs == Runs::unpack; }
};
/// Statements that run in the forward only, or in a replay only: a body that behaves otherwise on
/// its second call. They reach up to the statement before `end`.
struct BranchBegin {
  bool in_replay = false;
  std::size_t end = 0;
};
/// From here on the variable of `to` is what `from` is: a branch that only a replay takes gives
/// another tensor the name that forward's had.
struct Bind {
  ValueId from{0};
  ValueId to{0};
};
/// Autograd is off up to the statement before `end`.
struct NoGradBegin {
  std::size_t end = 0;
};
/// What the code up to the statement before `end` raises, the code around it catches, and goes on
/// from there: errors of the program's own (Raise), none of a protocol.
struct CatchBegin {
  std::size_t end = 0;
};

using Statement = std::variant<OpStatement, RegionBegin, RegionEnd, Release, SideEffect, Raise,
                               BranchBegin, Bind, NoGradBegin, WrapperBegin, WrapperEnd, CatchBegin,
                               NeedsTensor, Mark, CompiledBegin, OffloadBegin>;

/// The forward of one micro-batch.
struct Forward {
  std::vector<Statement> statements;
  std::optional<ValueId> root;       // what backward starts from
  std::vector<ValueId> other_roots;  // what some backward starts from instead
  std::vector<ValueId> inputs;       // leaves that dx asks for
};

/// What is trained: forwards, the tensors between their ops, and the parameters in their order.
struct Program {
  IdVector<BufferId, ProgramBuffer> buffers;
  IdVector<ValueId, ProgramValue> values;
  std::vector<ValueId> parameters;
  std::vector<Forward> forwards;
  std::vector<RankGroup> groups;  // of collectives
  bool differs_by_rank = false;   // some of what it was read from is for some ranks alone
  // Tensors without data that programs with excluded regions share: what a recompute boundary
  // saves, and what a replay is given for an output that nobody kept.
  std::optional<ValueId> trigger;
  std::optional<ValueId> placeholder;
};

/// Values that the statements from `begin` to `end` read and that were made before them, but
/// parameters, in the order read.
std::vector<ValueId> values_from_outside(const Program& program, const Forward& forward,
                                         std::size_t begin, std::size_t end);

/// Finds what each region captures and hands out, numbers the layers of each model, and gives every
/// layout its constant: the last step of making a program.
///
/// Layers are numbered as the program comes to them. Regions of one name are one layer, called
/// again; a region within another of the same model is part of that layer.
void finish_program(Program& program);

/// The models that the program's checkpointed regions are layers of, and how many each has.
std::map<std::string, std::size_t> layers_of_models(const Program& program);

}  // namespace remat
