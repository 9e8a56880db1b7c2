#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "model/program.hpp"
#include "properties/reference_units.hpp"
#include "properties/reference_wrappers.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// How a protocol's checkpointed regions go, as protocols.md §2 has it and not as the simulator
/// asks it.
struct ReferenceRules {
  enum class Regions : std::uint8_t { plain, holders, reentrant } regions = Regions::plain;
  bool excludes = false;   // P3 to P6: a replay leaves excluded regions out
  bool rederives = false;  // P4: and makes their saved inputs again
  bool has_boundaries = true;
  bool remat = false;      // P7: excluded regions are those to be saved; boundaries at the outside
  bool selective = false;  // P10: ops that the policy keeps are served to a replay
  /// P8, P9: what save units keep; none under other protocols.
  std::optional<ReferenceUnits> units;
  bool reentrant_without_units = false;  // regions of models that keep nothing (P8)
  bool early_stop = true;
  std::int64_t keep_every = 0;
  bool keeps_collectives = true;            // those that are asked for (A3)
  bool tracks_nested_outputs = true;        // P2: not as torch, which loses those in containers
  std::set<std::size_t> plain_layers = {};  // by where they end: checkpointed by name only

  /// What becomes of a region where gradients are on.
  Regions mode_of(const RegionBegin& region) const {
    if (region.kind != RegionKind::checkpointed || regions == Regions::plain ||
        plain_layers.contains(region.end))
      return Regions::plain;
    const bool keeps_nothing = reentrant_without_units && units->without_any.contains(region.owner);
    return region.reentrant || keeps_nothing ? Regions::reentrant : regions;
  }
};
ReferenceRules reference_rules(const Scenario& scenario, const Program& program);

/// Which ops of a stretch of a program get an autograd node, and where their gradients go: the
/// graph of a legal program, read off its statements alone.
class ReferenceGraph {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Where the gradient of an input goes: to a node's output, to a leaf, or nowhere.
  struct Edge {
    std::uint32_t node = none;
    std::uint32_t output = 0;
    std::optional<ValueId> leaf;
  };
  struct Node {
    std::size_t statement = 0;           // an op's, or the begin of a reentrant region
    std::size_t frame = no_frame;        // the begin of the region whose holders its saves are
    std::size_t excluded_in = no_frame;  // the same, of an excluded region's op
    std::optional<std::size_t> leaf;  // of the excluded region's output that it is the boundary of
    std::vector<Edge> edges;          // one for each input
    bool is_reached = false;          // from the root
    bool has_saves = false;
  };
  static constexpr std::size_t no_frame = std::numeric_limits<std::size_t>::max();

  /// Of the statements from `begin` up to `end`. What they read and do not make is a leaf.
  ReferenceGraph(const Program& program, const ReferenceRules& rules,
                 const ReferenceWrappers& wrappers, std::size_t begin, std::size_t end,
                 const std::vector<ValueId>& roots);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Edge>& roots() const { return roots_; }
  /// For each node, whether it leads to one of these leaves; all that are reached where none is
  /// named.
  std::vector<bool> running(const std::vector<ValueId>& leaves) const;

 private:
  /// False where something was raised that a catch around it stops.
  bool walk(std::size_t begin, std::size_t end, std::size_t frame, bool grad);
  void add_wrapper(std::size_t at, const WrapperBegin& wrapper, bool grad);
  void add_boundaries(std::size_t at, const std::vector<ValueId>& outputs);
  void add_op(std::size_t at, const OpStatement& op, std::size_t frame);
  void add_reentrant(std::size_t at, const RegionBegin& region);
  Edge edge_to(ValueId value) const;
  void make_without_node(const OpStatement& op);
  void make(ValueId value, std::uint32_t node, std::uint32_t output);

  const Program* program_;
  const ReferenceRules* rules_;
  const ReferenceWrappers* wrappers_;
  std::size_t n_catches_ = 0;           // around what is gone through
  std::size_t excluded_in_ = no_frame;  // the frame, while an excluded region's body is walked
  std::vector<Node> nodes_;
  std::vector<Edge> roots_;
  std::vector<Edge> made_by_;  // by value; `is_made_` says whether there is one
  std::vector<bool> is_made_;
};

}  // namespace remat
