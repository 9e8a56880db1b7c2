#include "sim/tape.hpp"

#include "model/errors.hpp"

namespace remat {

NodeRef Tape::make(std::uint64_t seq) {
  std::uint32_t node = 0;
  if (free_.empty()) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = free_.back();
    free_.pop_back();
    nodes_[node] = Node{};
  }
  nodes_[node].seq = seq;
  return {*this, node};
}

void Tape::drop_ref(std::uint32_t node) {
  REMAT_INVARIANT(nodes_[node].n_refs > 0);
  if (--nodes_[node].n_refs > 0) return;
  dying_.push_back(node);
  if (is_burying_) return;
  is_burying_ = true;
  while (!dying_.empty()) {
    const std::uint32_t dead = dying_.back();
    dying_.pop_back();
    // Moved out first: what follows may make the table of nodes grow or bury more of them.
    Node gone = std::move(nodes_[dead]);
    nodes_[dead] = Node{};
    for (SavedSlot& slot : gone.saves)
      owner_->release(slot);
    gone.reentrant.reset();
    gone.edges.clear();
    free_.push_back(dead);
  }
  is_burying_ = false;
}

}  // namespace remat
