#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/flat_map.hpp"
#include "sim/rank.hpp"

namespace remat {

/// One call of backward or grad: its nodes run in decreasing order of creation, so every node after
/// all that feed it (observed-torch.md §8 R2, R4).
struct Rank::GraphTask {
  struct Root {
    NodeRef node;
    std::uint32_t output = 0;
    Gradient gradient;
  };
  ReplayKey key;
  bool retain = false;
  std::optional<std::vector<ValueId>> targets;  // leaves asked for; none: all
  std::vector<Root> roots;

  std::vector<NodeRef> nodes;                    // all that can be reached, newest first
  FlatMap<std::size_t> places;                   // node → its place among them
  std::vector<bool> runs;                        // by place
  std::vector<std::optional<Gradient>> arrived;  // by place and output
  std::vector<std::size_t> first_arrived;        // by place: where in `arrived` its outputs begin
  std::span<std::optional<Gradient>> arrived_at(std::size_t place) {
    return std::span(arrived).subspan(first_arrived[place],
                                      first_arrived[place + 1] - first_arrived[place]);
  }
  std::map<std::uint32_t, Gradient> captured;  // by node: what reached a reentrant call's inputs
  const IdSet* beyond = nullptr;               // nodes that no edge is followed to
  Graph* leaves_for_dw = nullptr;              // dx: where intermediates leave their gradients
};

}  // namespace remat
