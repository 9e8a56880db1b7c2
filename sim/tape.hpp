#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/program.hpp"
#include "sim/call_site.hpp"
#include "sim/event_log.hpp"
#include "sim/ledger.hpp"

namespace remat {

class Tape;

/// One tensor that a node saved for its backward: the tensor itself, or a holder in a frame.
struct SavedSlot {
  enum class Where : std::uint8_t {
    nowhere,
    kept,
    holder,
    input_slot  // an excluded region's: a replay brings the tensor
  } where = Where::nowhere;
  Tensor kept;
  std::uint32_t version = 0;  // of the kept tensor's storage, when it was kept
  std::int64_t number = -1;  // of a slot that the trace shows; none for what a replay's graph saves
  bool is_region_input = false;
  bool is_excluded = false;  // kept inside an excluded region
  std::uint32_t frame = 0;   // of a holder or an input slot
  std::uint32_t index = 0;
  std::uint8_t factor = Save::no_factor;
  const ExcludedSlot* recorded = nullptr;  // of a recording's save in an excluded region's body
};

/// Keeps a node alive.
class NodeRef {
 public:
  NodeRef() = default;
  NodeRef(Tape& tape, std::uint32_t node);
  NodeRef(NodeRef&& other) noexcept
      : tape_(std::exchange(other.tape_, nullptr)), node_(other.node_) {}
  NodeRef& operator=(NodeRef&& other) noexcept {
    std::swap(tape_, other.tape_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef();

  explicit operator bool() const { return tape_ != nullptr; }
  std::uint32_t index() const { return node_; }
  NodeRef shared() const { return tape_ == nullptr ? NodeRef() : NodeRef(*tape_, node_); }

 private:
  Tape* tape_ = nullptr;
  std::uint32_t node_ = 0;
};

/// Where the gradient of one input of a node goes: to the node that made it, or to a leaf.
struct Edge {
  NodeRef node;
  std::uint32_t output = 0;
  std::optional<ValueId> leaf;
};

/// One call of a reentrant region: what its node's backward needs to run it again.
struct ReentrantCall {
  std::size_t forward = 0;  // which one of the program
  std::size_t begin = 0;    // the region's statement
  std::optional<std::int64_t> invocation;
  std::int64_t rng_position = 0;
  std::set<std::uint32_t> flipped;  // of the walk that called it
  bool is_compiled = false;         // likewise
  std::vector<Tensor> captured;
};

struct Node {
  const OpStatement* op = nullptr;   // none for a reentrant call and for what captures a gradient
  const Raise* in_unpack = nullptr;  // what a hook raises when its saves are asked for
  std::unique_ptr<ReentrantCall> reentrant;
  bool is_boundary = false;  // a recompute boundary: identity, and a save that drives the replay
  std::uint64_t seq = 0;     // order of creation
  std::vector<Edge> edges;   // one for each input
  std::vector<SavedSlot> saves;
  std::uint32_t n_outputs = 0;
  bool released = false;                     // its saves are gone
  CallSite site;                             // where it was made
  std::optional<std::size_t> offload_group;  // likewise
  std::uint32_t n_refs = 0;
};

/// What a slot's end means to others: the frame that it belongs to.
class SlotOwner {
 public:
  SlotOwner() = default;
  SlotOwner(const SlotOwner&) = delete;
  SlotOwner& operator=(const SlotOwner&) = delete;
  virtual ~SlotOwner() = default;
  virtual void release(SavedSlot& slot) = 0;
};

/// The nodes of all graphs of a rank. A node dies with its last reference, and takes its edges'
/// references along: without recursion, however deep the graph.
class Tape {
 public:
  explicit Tape(SlotOwner& owner) : owner_(&owner) {}

  NodeRef make(std::uint64_t seq);
  std::uint64_t next_seq() { return next_seq_++; }
  /// Visits what living nodes saved, in the order of the nodes' places.
  template <typename Visit>
  void each_save(Visit visit) const {
    for (const Node& node : nodes_) {
      for (const SavedSlot& slot : node.saves)
        visit(slot);
    }
  }
  /// Nodes that are alive, and places for nodes: as many as ever lived at one time.
  std::size_t n_alive() const { return n_places() - free_.size(); }
  std::size_t n_places() const { return nodes_.size(); }
  Node& operator[](std::uint32_t node) { return nodes_[node]; }
  const Node& operator[](std::uint32_t node) const { return nodes_[node]; }

 private:
  friend class NodeRef;
  void add_ref(std::uint32_t node) { ++nodes_[node].n_refs; }
  void drop_ref(std::uint32_t node);

  SlotOwner* owner_;
  std::deque<Node> nodes_;  // a node stays where it is while others are made
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> dying_;
  bool is_burying_ = false;
  std::uint64_t next_seq_ = 0;
};

inline NodeRef::NodeRef(Tape& tape, std::uint32_t node) : tape_(&tape), node_(node) {
  tape.add_ref(node);
}
inline NodeRef::~NodeRef() {
  if (tape_ != nullptr) tape_->drop_ref(node_);
}

}  // namespace remat
